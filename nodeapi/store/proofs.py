"""Proofs for the newest block, and for older ones whose trie nodes are kept.

A node is valid if it has the hash that its parent names, and the root if it has the state
root of the block. Nodes therefore do not have to be read in one snapshot. If the head
changes between two reads, a node has another hash, and there is no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from eth_typing import Address

from evm.state_trie import STATE_OWNER, address_key, slot_key
from evm.trie_nodes import HASHED_SIZE
from evm.trie_proofs import KeyProof
from jsonrpc.later import Later, all_of
from networks.directory import NetworkView
from nodeapi.results.proofs import proof_document, storage_root
from nodeapi.store import queries
from nodeapi.store.base import CacheKey, Reads, Sources
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, read_array, read_int8

SHORT_PROOF_KEYS = 32
"""Maximum number of slots that are proven in the event loop, which takes up to 3 ms."""

_MAX_BATCH = 64
"""Keys of one query. Each has about eight nodes of half a kilobyte."""


class _State(NamedTuple):
    """The state whose nodes are read.

    number: of the block, None for the newest state.
    """

    network_id: int
    number: int | None


class ProofReads(Reads):
    """Reads of trie nodes.

    All results fail with Unavailable while the database is unavailable.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._state_roots: Lookup[tuple[int, bytes], bytes] = Lookup(
            sources.connections,
            queries.STATE_ROOT,
            [("network_id", INT8), ("hash", BYTEA)],
            _bytes,
            is_immutable=True,
        )
        place = [
            ("network_id", INT8),
            ("owner", BYTEA),
            ("nibbles", BYTEA),
            ("depth", INT8),
        ]
        self._nodes: Lookup[tuple[Any, ...], list[bytes]] = Lookup(
            sources.connections, queries.TRIE_NODES, place, _nodes, max_batch=_MAX_BATCH
        )
        self._former_nodes: Lookup[tuple[Any, ...], list[bytes]] = Lookup(
            sources.connections,
            queries.FORMER_TRIE_NODES,
            [*place, ("number", INT8)],
            _nodes,
            max_batch=_MAX_BATCH,
        )

    def proof(
        self,
        network_id: int,
        block_hash: bytes,
        address: bytes,
        names: Sequence[str],
    ) -> Later[bytes | None]:
        """Return the result of eth_getProof after a stored block.

        names: the slots' keys, as `nodeapi.methods.eth_proofs.key_names` returns them.

        None if the block's trie nodes are not stored, or if there are more keys than
        SHORT_PROOF_KEYS.
        """
        cache_key = ("proof", network_id, block_hash, address, tuple(names))
        cached = self._cache.get(cache_key)
        if cached is not None:
            return Later(cached)
        if len(names) > SHORT_PROOF_KEYS:
            return Later(None)
        return self._directory.current(network_id).then(
            partial(self._proof_in, cache_key, address, names)
        )

    def _proof_in(
        self,
        cache_key: tuple[str, int, bytes, bytes, tuple[str, ...]],
        address: bytes,
        names: Sequence[str],
        view: NetworkView,
    ) -> Later[bytes | None]:
        proof = self._prove(view, cache_key[2], address, names)
        return Later.from_coroutine(proof).then(partial(self._keep_proof, cache_key))

    def _keep_proof(self, cache_key: CacheKey, proof: bytes | None) -> bytes | None:
        if proof is not None:
            self._cache.put(cache_key, proof)
        return proof

    async def _prove(
        self, view: NetworkView, block_hash: bytes, address: bytes, names: Sequence[str]
    ) -> bytes | None:
        root, number = await self.state_root(view.id, block_hash)
        state = _State(view.id, None if block_hash == view.head_hash else number)
        owner = address_key(Address(address))
        account = KeyProof(root, owner)
        if not await self._complete(state, STATE_OWNER, [account]):
            return None
        root = storage_root(account)
        slots = [KeyProof(root, slot_key(int(name, 16))) for name in names]
        if not await self._complete(state, owner, slots):
            return None
        return proof_document(address, account, names, slots)

    async def state_root(self, network_id: int, block_hash: bytes) -> tuple[bytes, int]:
        """Return the state root and the number of a block. Raises: Unavailable."""
        cache_key = ("state root", network_id, block_hash)
        found = self._cache.get(cache_key)
        if found is None:
            found = await self._state_roots.get((network_id, block_hash))
            if found is None:
                raise Unavailable("the block was deleted")
            self._cache.put(cache_key, found)
        return found[:32], read_int8(found[32:])

    async def _complete(
        self, state: _State, owner: bytes, proofs: Sequence[KeyProof]
    ) -> bool:
        """Read the nodes of proofs. Return False if they belong to another state."""
        waiting = [proof for proof in proofs if self._extend(proof)]
        while waiting:
            rows = await all_of([self._read(state, owner, proof) for proof in waiting])
            for proof, nodes in zip(waiting, rows, strict=True):
                if not nodes or not self._add(proof, nodes):
                    return False
            waiting = [proof for proof in waiting if self._extend(proof)]
        return True

    def _read(
        self, state: _State, owner: bytes, proof: KeyProof
    ) -> Later[list[bytes] | None]:
        """Return the stored nodes among the next ones of a proof."""
        key = (state.network_id, owner, proof.nibbles, proof.depth)
        if state.number is None:
            return Later.from_future(self._nodes.get(key))
        return Later.from_future(self._former_nodes.get((*key, state.number)))

    def _extend(self, proof: KeyProof) -> bool:
        """Add cached nodes. Return whether more nodes have to be read."""
        while proof.reference is not None:
            node = self._cache.get(("node", proof.reference))
            if node is None:
                return True
            proof.add(node)
        return False

    def _add(self, proof: KeyProof, nodes: Sequence[bytes]) -> bool:
        """Add stored nodes, and cache those above the last one.

        Return False if one has another hash than its parent names.
        """
        for node in nodes:
            reference = proof.reference
            if reference is None:
                return True
            if not proof.add(node):
                return False
            if proof.reference is not None and len(reference) == HASHED_SIZE:
                self._cache.put(("node", reference), node)
        return True


def _bytes(row: Row) -> bytes:
    return row[0] or b""


def _nodes(row: Row) -> list[bytes]:
    return read_array(row[0] or b"")
