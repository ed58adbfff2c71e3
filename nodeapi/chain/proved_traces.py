"""Traces of proved blocks: their execution on a proved state, and its rows.

A block up to the checkpoint has receipts and logs, but neither trace records nor an access
list until it is executed here. The execution has to confirm everything that the header
names, the state root included. Versions of accounts and slots are not stored, and neither
are appearances, whose index begins after the checkpoint without a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from evm.header_rules import UNCLE_DEPTH
from evm.tracers.record import RECORD_LIMIT_BYTES
from nodeapi.chain.access_lists import blocks_without_list, insert_access_lists
from nodeapi.chain.branches import Branches
from nodeapi.chain.position import ANCESTORS_KEPT, generation
from nodeapi.chain.rows import Rows, block_row
from nodeapi.chain.verification import Parent, verify_block

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import psycopg
    from eth_typing import Hash32

    from evm.blocks import Block
    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from nodeapi.chain.branches import StoredBlock
    from nodeapi.chain.verification import Verified
    from nodeapi.proofs.past_state import PastState

_LOCK: LiteralString = "SELECT FROM nodeapi_block WHERE id = %b FOR UPDATE"
_IS_TRACED: LiteralString = "SELECT FROM nodeapi_blockaccesslist WHERE block_id = %b"


class UnknownAncestor(Exception):
    """Raised for the parent or an ancestor's hash that a block needs and nobody has sent."""


@dataclass(frozen=True, slots=True)
class Untraced:
    """A proved block without traces, and the ancestors that are known."""

    stored: StoredBlock
    block: Block
    parent: Header
    hashes: AncestorHashes


class ProvedTraces:
    """Executes the proved blocks of a network, and stores their traces."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        config: ChainConfig,
        *,
        record_limit_bytes: int = RECORD_LIMIT_BYTES,
    ) -> None:
        """Set the network. record_limit_bytes: see `verify_block`."""
        self._connection = connection
        self._network_id = network_id
        self._config = config
        self._record_limit_bytes = record_limit_bytes
        self._branches = Branches(connection, network_id)

    def missing(self, first: int, last: int) -> Iterator[tuple[int, Hash32]]:
        """Yield number and hash of the blocks first … last without traces, newest first.

        Every block that was executed has an access list.
        """
        for _, block_hash, number in blocks_without_list(
            self._connection, self._network_id, first, last
        ):
            yield number, block_hash

    def find(self, block_hash: Hash32) -> StoredBlock:
        """Return a stored block. Raises: LookupError."""
        stored = self._branches.find(block_hash)
        if stored is None:
            raise LookupError(f"block 0x{block_hash.hex()} is not stored")
        return stored

    def open(self, stored: StoredBlock, headers: Mapping[Hash32, Header]) -> Untraced:
        """Return a block. headers: of ancestors that may not be stored, by hash.

        Raises: UnknownAncestor without its parent.
        """
        hashes = AncestorHashes(self._branches, stored.header, headers)
        parent = hashes.header(stored.header.parent_hash)
        return Untraced(stored, stored.block(), parent, hashes)

    def execute(self, untraced: Untraced, state: PastState) -> Verified:
        """Execute a block on its parent's state.

        Raises: InvalidBlock; UnknownAncestor; NoProof and UnknownValues by the state, and
            MissingTrieNode.
        """
        stored, block = untraced.stored, untraced.block
        parent = self._branches.find(untraced.parent.hash)
        line = [] if parent is None else [parent]
        if parent is not None and block.uncles:
            line = self._branches.ancestors(parent, UNCLE_DEPTH + 1)
        return verify_block(
            block,
            Parent(
                untraced.parent,
                stored.total_difficulty - block.header.difficulty,
                untraced.hashes,
                [generation(each.block()) for each in line],
                state,
                state.open_trie(),
            ),
            self._config,
            record_limit_bytes=self._record_limit_bytes,
        )

    def store(self, untraced: Untraced, verified: Verified) -> None:
        """Store traces, access list and code of an executed block, in one transaction.

        Nothing is done if another process has done so. Raises: LookupError if the block was
        deleted with its network.
        """
        block_id = untraced.stored.id
        row = block_row(verified, is_canonical=True)
        assert row.access_list is not None, "recorded by each execution"
        with self._connection.transaction(), self._connection.cursor() as cursor:
            if cursor.execute(_LOCK, (block_id,)).fetchone() is None:
                raise LookupError("the block was deleted")
            if cursor.execute(_IS_TRACED, (block_id,)).fetchone() is not None:
                return
            rows = Rows(self._connection, self._network_id)
            rows.insert_codes(verified.changes.codes)
            rows.replace_records(block_id, row.records)
            insert_access_lists(cursor, [(block_id, row.access_list)])


class AncestorHashes:
    """Hashes from a block's parent on, newest first, which are read when they are needed.

    BLOCKHASH takes the end of the hashes for block 0. So an unknown hash is an exception.
    """

    def __init__(
        self, branches: Branches, header: Header, headers: Mapping[Hash32, Header]
    ) -> None:
        """Set the block. headers: of ancestors that may not be stored, by hash."""
        self._branches = branches
        self._header = header
        self._headers = headers

    def __iter__(self) -> Iterator[Hash32]:
        """Yield up to 256 hashes. Raises: UnknownAncestor."""
        last = self._header.parent_hash
        yield last
        known = 1
        parent = self._branches.find(last)
        if parent is not None:
            for last in self._branches.ancestor_hashes(parent, ANCESTORS_KEPT)[1:]:
                yield last
                known += 1
        while known < min(self._header.number, ANCESTORS_KEPT):
            last = self.header(last).parent_hash
            yield last
            known += 1

    def header(self, block_hash: Hash32) -> Header:
        """Return the header of an ancestor. Raises: UnknownAncestor."""
        stored = self._branches.find(block_hash)
        if stored is not None:
            return stored.header
        found = self._headers.get(block_hash)
        if found is None:
            raise UnknownAncestor(
                f"the block 0x{block_hash.hex()} below it is needed, but not stored"
            )
        return found
