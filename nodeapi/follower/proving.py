"""What the follower of a sparse network fetches from the upstreams, with proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from evm.block_keys import known_keys
from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState
from nodeapi.chain.state_reader import StoredNodes
from nodeapi.proofs.fetch import Fetched, fetch
from nodeapi.proofs.keys import changed_below, probes_below
from nodeapi.proofs.values import (
    Anchor,
    NoProof,
    anchor_at,
    head_anchor,
    insert_nodes,
    insert_values,
)
from nodeapi.upstreams import state
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.hints import listed_keys, most_keys, prestate_keys

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable, Collection, Mapping

    import psycopg

    from evm.blocks import Block
    from evm.changes import Changes
    from evm.headers import Header
    from evm.proof_nodes import NodeRows
    from nodeapi.follower.pool import UpstreamPool
    from nodeapi.follower.thread import LoopThread
    from nodeapi.upstreams.client import UpstreamClient

Answer = TypeVar("Answer")
Rows = dict[bytes, bytes]
"""Path of a trie's node → its RLP."""

COLD_KEYS = 500
"""A block after one that had more unknown values than this is executed from its witness.
The witness has all nodes that a block needs, 17 MB on average on mainnet."""


class FollowerProver:
    """Fetches unknown values and trie nodes of the head's state; see `Prover`."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        thread: LoopThread,
        pool: UpstreamPool,
        stop: threading.Event,
    ) -> None:
        """Set where to fetch, and where to store.

        connection: the importer's. thread: runs the pool. stop: ends each wait.
        """
        self._connection = connection
        self._network_id = network_id
        self._thread = thread
        self._pool = pool
        self._stop = stop
        self._stored_nodes = StoredNodes(connection, network_id)
        self.fork_number: int | None = None
        self.target: Header | None = None
        self._block: Block | None = None
        """The block that is being executed."""
        self._missed = COLD_KEYS + 1
        """Number of values that had to be fetched for the last block."""
        self._witness: ProvedState | None = None
        """The head's state as far as the block's witness proves it."""
        self._witness_rows: NodeRows = {}
        self._fork_rows: NodeRows = {}
        """Nodes of the tries after the fork point, which are not stored."""
        self._fork_of_rows: Anchor | None = None

    def expect(self, block: Block) -> Keys | None:
        """Return what a block on top of the head will probably read, None if unknown.

        A block's access list names everything (EIP-7928). Without one, a witness is
        read while much of the state is unknown, and otherwise a trace by an upstream. It
        lacks what system calls and withdrawals access, and may miss other values.
        """
        self._block, self.target = block, block.header
        is_cold, self._missed = self._missed > COLD_KEYS, 0
        self._witness = None
        header, limit = block.header, most_keys(block.header.gas_used)
        listed = self._first(
            lambda client: listed_keys(
                client, header.hash, header.block_access_list_hash, limit
            ),
            header.number,
        )
        if listed is not None:
            return listed
        if is_cold and self._read_witness():
            return Keys()  # its values are stored when they are read
        traced = self._first(
            lambda client: prestate_keys(client, header.hash, limit), header.number
        )
        if traced is not None:
            traced.update(known_keys(block))
        return traced

    def values(self, keys: Keys) -> None:
        """Store values, with the trie nodes that prove them. Raises: NoProof."""
        self._missed += len(keys)
        anchor = self._anchor()
        if self._witness is not None:
            known, keys = self._witness.values(keys)
            insert_values(self._connection, self._network_id, anchor, known)
            if not keys:
                return
        used, fetched = self._fetch(anchor, keys)
        insert_values(self._connection, self._network_id, anchor, fetched.values)
        if used == anchor:
            self._store_nodes(anchor, fetched.nodes)

    def nodes(
        self, owner: bytes, paths: Collection[bytes], changes: Changes
    ) -> Mapping[bytes, bytes]:
        """Store nodes of one trie that are needed to apply changes, and return them.

        A node is proved together with a key below it. If the block changes none there,
        the node is a sibling of deleted keys. It is then found in the proof that one of
        them is absent after the block, or after the fork point of its branch, or in the
        block's witness, or by a key that is searched for.

        Raises: NoProof.
        """
        anchor = self._anchor()
        found: dict[bytes, bytes] = {}
        changed = changed_below(owner, paths, changes)
        if changed:
            found |= self._fetch_nodes(anchor, owner, changed)
        missing = [path for path in paths if path not in found]
        if missing:
            found |= self._unmerged(owner, missing, changes)
            missing = [path for path in missing if path not in found]
        if missing and self._witness is None and self._read_witness():
            found |= self._witness_rows.get(owner, {})
            missing = [path for path in missing if path not in found]
        if missing:
            probes = probes_below(owner, missing, changes)
            found |= self._fetch_nodes(anchor, owner, probes)
        return {path: found[path] for path in paths if path in found}

    def _unmerged(
        self, owner: bytes, paths: Collection[bytes], changes: Changes
    ) -> Rows:
        """Return siblings of deleted keys, as far as proofs of absent keys show them.

        The keys are absent after the target, and those that a reorganisation removes are
        absent after the fork point.
        """
        found: Rows = {}
        if self.target is not None:
            target = self.target
            end = Anchor(target.number, target.hash, target.state_root)
            found = self._unmerged_at(end, owner, paths, changes, is_trusted=False)
        fork, missing = self._fork(), [path for path in paths if path not in found]
        if missing and fork is not None:
            found |= self._unmerged_at(fork, owner, missing, changes, is_trusted=True)
        return found

    def _unmerged_at(
        self,
        end: Anchor,
        owner: bytes,
        paths: Collection[bytes],
        changes: Changes,
        *,
        is_trusted: bool,
    ) -> Rows:
        """Return siblings of keys that are absent after a block.

        is_trusted: whether the block is the fork point.
        """
        keys = changed_below(owner, [path[:-1] for path in paths], changes)
        parents = self._parents(owner, paths)
        nodes, found = ProofNodes(), Rows()

        async def ask(client: UpstreamClient) -> Rows | None:
            material = await state.proofs(client, end.number, end.hash, keys)
            nodes.add(material.nodes)
            found.update(
                nodes.siblings(
                    *(end.state_root, owner, paths, parents), are_unchanged=is_trusted
                )
            )
            return found if len(found) == len(paths) else None

        self._first(ask, end.number)
        return found

    def _parents(self, owner: bytes, paths: Collection[bytes]) -> Rows:
        """Return the nodes above paths, as far as they are known."""
        above = {path[:-1] for path in paths}
        forked = self._fork_rows.get(owner, {})
        known = {path: forked[path] for path in above if path in forked}
        return {**known, **self._stored_nodes.nodes(owner, above)}

    def _read_witness(self) -> bool:
        """Read the block's witness, and store its nodes. Return whether there is one."""
        if self._block is None:
            return False
        header = self._block.header
        witness = self._first(
            lambda client: state.witness(client, header.number, header.hash),
            header.number,
        )
        if witness is None:
            return False
        anchor = self._anchor()
        nodes = ProofNodes(witness.nodes)
        self._witness_rows = self._store_nodes(anchor, nodes)
        self._witness = ProvedState(anchor.state_root, nodes, witness.codes)
        return True

    def _store_nodes(self, anchor: Anchor, nodes: ProofNodes) -> NodeRows:
        rows = nodes.rows(anchor.state_root)
        insert_nodes(self._connection, self._network_id, rows)
        return rows

    def _anchor(self) -> Anchor:
        return head_anchor(self._connection, self._network_id)

    def _fetch_nodes(self, head: Anchor, owner: bytes, keys: Keys) -> Rows:
        """Return the nodes of one trie that prove keys, and store those of the head."""
        used, fetched = self._fetch(head, keys)
        if used == head:
            return self._store_nodes(head, fetched.nodes).get(owner, {})
        if used != self._fork_of_rows:
            self._fork_of_rows, self._fork_rows = used, {}
        rows = fetched.nodes.rows(used.state_root)
        for each, nodes in rows.items():
            self._fork_rows.setdefault(each, {}).update(nodes)
        return rows.get(owner, {})

    def _fetch(self, head: Anchor, keys: Keys) -> tuple[Anchor, Fetched]:
        """Fetch values with their proofs. Return the block at which they are proved.

        It is the head, or else the fork point of the branch that is executed. After a
        reorganisation, upstreams may only have the state of the latter. What no block
        has written since the checkpoint is the same after both. It is not proved on the
        branch, whose blocks may have written it.

        Raises: NoProof, Stopped.
        """
        try:
            return head, self._fetch_at(head, keys)
        except NoProof:
            fork = self._fork()
            if fork is None or fork == head:
                raise
        return fork, self._fetch_at(fork, keys)

    def _fork(self) -> Anchor | None:
        number = self.fork_number
        if number is None:
            return None
        return anchor_at(self._connection, self._network_id, number)

    def _fetch_at(self, anchor: Anchor, keys: Keys) -> Fetched:
        clients = self._pool.clients(anchor.number)
        return self._thread.run(
            fetch(clients, anchor, keys, self._pool.blame_client), self._stop
        )

    def _first(
        self,
        ask: Callable[[UpstreamClient], Awaitable[Answer | None]],
        number: int,
    ) -> Answer | None:
        """Return the first answer of an upstream that is not None.

        number: of the block about which the upstreams are asked.
        """
        return self._thread.run(self._ask(ask, number), self._stop)

    async def _ask(
        self, ask: Callable[[UpstreamClient], Awaitable[Answer | None]], number: int
    ) -> Answer | None:
        for client in self._pool.clients(number):
            try:
                answer = await ask(client)
            except (UpstreamError, UpstreamUnavailable):
                continue
            if answer is not None:
                return answer
        return None
