"""What the follower of a sparse network fetches from the upstreams, with proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from evm.block_access_list import decode_access_list
from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState
from nodeapi.chain.state_reader import StoredNodes, StoredState
from nodeapi.follower.block_hints import BlockHints, Hint, Kind
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

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable, Collection, Mapping

    import psycopg
    from eth_typing import Hash32

    from evm.blocks import Block
    from evm.changes import Changes
    from evm.headers import Header
    from evm.proof_nodes import NodeRows
    from nodeapi.follower.pool import UpstreamPool
    from nodeapi.follower.thread import LoopThread
    from nodeapi.upstreams.client import UpstreamClient
    from nodeapi.upstreams.state import Material

Answer = TypeVar("Answer")
Rows = dict[bytes, bytes]
"""Path of a trie's node → its RLP."""

COLD_KEYS = 500
"""A block after one that had more unknown values than this is executed from its witness.
The witness has all nodes that a block needs, 17 MB on average on mainnet."""

_COLD_KINDS = (Kind.LIST, Kind.WITNESS, Kind.TRACE)
_WARM_KINDS = (Kind.LIST, Kind.TRACE)
"""What upstreams are asked about a block, in this order."""

MISSES = 3
"""How often values may be missing although an upstream has named what a block reads. The
next upstream is asked then."""

UNUSED_KEYS = 500
"""An upstream may name so many unknown values that a block does not read, and as many as it
does read. If it names more, it is not asked for some minutes."""


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
        self._is_next = False
        """Whether its parent is the head, so that its witness is one of the head's state."""
        self._fetches = COLD_KEYS + 1
        """Number of values that had to be fetched for the last block."""
        self._kinds: tuple[Kind, ...] = ()
        self._hints: BlockHints | None = None
        self._hint: Hint | None = None
        """The last answer of an upstream about the block."""
        self._named: Keys | None = None
        """The unknown values among those that it has named."""
        self._misses = 0
        self._witness: ProvedState | None = None
        """The head's state as far as the block's witnesses prove it."""
        self._witness_nodes = ProofNodes()
        self._witness_codes: dict[Hash32, bytes] = {}
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
        is_cold, self._fetches = self._fetches > COLD_KEYS, 0
        self._block, self.target = block, block.header
        self._is_next = block.header.parent_hash == self._anchor().hash
        self._kinds = _COLD_KINDS if is_cold and self._is_next else _WARM_KINDS
        self._hints = BlockHints(self._pool.clients(block.header.number), block)
        self._witness, self._witness_rows = None, {}
        self._witness_nodes, self._witness_codes = ProofNodes(), {}
        self._misses, self._named = 0, None
        return self._next_hint()

    def values(self, keys: Keys) -> None:
        """Store values, with the trie nodes that prove them. Raises: NoProof.

        The first ones of a block are those that an upstream has named.
        """
        self._fetches += len(keys)
        anchor = self._anchor()
        keys = self._not_witnessed(anchor, keys)
        if self._named is None:
            self._named = keys
        elif keys:
            self._misses += 1
            if self._misses > MISSES and self._hint is not None:
                keys = self._with_next_hint(anchor, self._hint, keys)
        for portion in state.portions(keys):
            used, fetched = self._fetch(anchor, portion)
            insert_values(self._connection, self._network_id, anchor, fetched.values)
            if used == anchor:
                self._store_nodes(anchor, fetched.nodes)

    def executed(self, access_list: bytes) -> None:
        """Refuse hints of an upstream that has named much more than a block has read."""
        hint, named = self._hint, self._named
        if hint is None or named is None or len(named) <= UNUSED_KEYS:
            return
        read = Keys()
        for each in decode_access_list(access_list):
            read.accounts.add(each.address)
            read.slots.update((each.address, slot) for slot in each.storage)
            read.slots.update((each.address, slot) for slot in each.reads)
        used = len(named.accounts & read.accounts) + len(named.slots & read.slots)
        if len(named) > UNUSED_KEYS + 2 * used:
            hint.refuse()

    # What upstreams name

    def _next_hint(self) -> Keys | None:
        """Return what the next upstream names, None if none does. Empty for a witness."""
        self._hint = self._ask_next(*self._kinds)
        return None if self._hint is None else self._hint.keys

    def _ask_next(self, *kinds: Kind) -> Hint | None:
        """Return an upstream's answer of one of the kinds. The nodes of a witness are stored."""
        while self._hints is not None:
            hint = self._thread.run(self._hints.next(*kinds), self._stop)
            if hint is None or hint.witness is None or self._add_witness(hint.witness):
                return hint
            hint.refuse()
        return None

    def _with_next_hint(self, anchor: Anchor, former: Hint, keys: Keys) -> Keys:
        """Return keys to fetch, with what the next upstream names.

        The former one is not asked again for a while if the next one has named the keys.
        """
        named = self._next_hint()
        if named is None:
            return keys
        self._misses = 0
        left = self._not_witnessed(anchor, keys)
        left = Keys(left.accounts - named.accounts, left.slots - named.slots)
        if not left:
            former.refuse()
        named.update(keys)
        known = StoredState(self._connection, self._network_id, anchor.number)
        self._named = self._not_witnessed(anchor, known.unknown(named))
        return self._named

    def _not_witnessed(self, anchor: Anchor, keys: Keys) -> Keys:
        """Store the values that the block's witnesses prove, and return the other keys."""
        if self._witness is None:
            return keys
        found, keys = self._witness.values(keys)
        insert_values(self._connection, self._network_id, anchor, found)
        return keys

    def _add_witness(self, witness: Material) -> bool:
        """Store the nodes of a witness. Return whether it is one of the head's state."""
        anchor, nodes = self._anchor(), ProofNodes(witness.nodes)
        if not nodes.prove(anchor.state_root, bytes(32)).nodes:
            return False
        self._witness_nodes.update(nodes)
        self._witness_codes |= witness.codes
        self._witness_rows = self._store_nodes(anchor, self._witness_nodes)
        self._witness = ProvedState(
            anchor.state_root, self._witness_nodes, self._witness_codes
        )
        return True

    # Trie nodes

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
        while missing and self._is_next and self._ask_next(Kind.WITNESS) is not None:
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
