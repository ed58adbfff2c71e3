"""Reads of the oldest blocks with each kind of data, and checks of blocks against them."""

from __future__ import annotations

from dataclasses import dataclass

from evm.headers import Header
from evm.state_trie import STATE_OWNER
from jsonrpc.later import DONE, Later
from networks.directory import NetworkView
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.results import proofs
from nodeapi.store.base import Sources, kept_from
from nodeapi.store.fees import HeaderReads
from nodeapi.store.head_values import HeadValues
from postgres.errors import Unavailable
from postgres.statement import BYTEA, INT8, Statement, int8, read_int8

_NO = Later(False)

_FIRST_BLOCKS = 64
"""Blocks whose changes are counted by the first query. Each further one counts those of
twice as many blocks."""

_KEPT = Statement(
    """
    SELECT keep_proofs::int8,
        (SELECT block_number FROM nodeapi_trienodeversion
         WHERE network_id = $1 AND owner = $2 AND path = ''
         ORDER BY block_number LIMIT 1)
    FROM networks_network WHERE id = $1
    """,
    [INT8.oid, BYTEA.oid],
)
"""network_id, owner of the state trie → keep_proofs; the oldest block that has replaced a
root node which is kept. Every block that changes a node changes the root."""

_RECORDED = Statement(
    """
    SELECT 1 FROM nodeapi_block b
    JOIN nodeapi_blockaccesslist l ON l.block_id = b.id
    WHERE b.network_id = $1 AND b.hash = $2
    """,
    [INT8.oid, BYTEA.oid],
)
"""network_id, hash of a block → a row if it was executed: only then it has a list."""

_CHANGES = Statement(
    """
    SELECT max(block_number) FILTER (WHERE changes > $4), max(changes)::int8
    FROM (
        SELECT block_number, sum(count(*)) OVER (ORDER BY block_number DESC) AS changes
        FROM nodeapi_accountversion
        WHERE network_id = $1 AND block_number > $2 AND block_number <= $3
        GROUP BY block_number
    ) c
    """,
    [INT8.oid] * 4,
)
"""network_id, the block before the first one, the last block, limit → the newest block
from which on more accounts than the limit have changed, and the number of all changes."""


@dataclass(frozen=True, slots=True)
class KeptData:
    """The oldest blocks with certain data, by number.

    oldest_block: this block and all later ones are stored, with their logs.
    oldest_state: from this block on, the state is known, or can be fetched with proofs.
    oldest_proof: eth_getProof works for this block and all later ones.
    proof_blocks: number of blocks below the head for which former trie nodes are kept;
        None: there is no such limit, because none or all are kept.
    """

    oldest_block: int
    oldest_state: int
    oldest_proof: int
    proof_blocks: int | None


class KeptReads(HeaderReads):
    """Reads of the oldest blocks with certain data. All fail with Unavailable."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._oldest_computed = HeadValues(
            sources.directory, self._read_oldest_computed
        )

    def require_state(
        self,
        network: NetworkView,
        block_hash: bytes,
        *,
        is_executed: bool = False,
    ) -> Later[None]:
        """Check that the rows and trie nodes of the state after a block may be stored.

        is_executed: whether the block has to be executed, so that those of the state
            before it are needed as well.

        Fails with HistoryPruned. An unknown block is accepted, and so is block 0 if it has
        to be executed, because that is refused anyway.
        """
        if network.checkpoint_number is None or not block_hash:
            return DONE
        oldest = network.checkpoint_number + is_executed

        def check(header: Header | None) -> None:
            if header is None or header.number >= oldest:
                return
            if header.number or not is_executed:
                raise HistoryPruned(oldest)

        return self.header(network.id, block_hash).then(check)

    def is_untraced(
        self, network: NetworkView, block_hash: bytes, *, is_recorded: bool
    ) -> Later[bool]:
        """Return whether an answer needs the execution of a block that was only proved.

        is_recorded: whether the records of a trace are sufficient, if there are some.
        """
        checkpoint = network.checkpoint_number
        if checkpoint is None or not block_hash:
            return _NO

        def check(header: Header | None) -> Later[bool]:
            if header is None or not 0 < header.number <= checkpoint:
                return _NO
            if not is_recorded:
                return Later(True)
            return Later.from_coroutine(self._lacks_records(network.id, block_hash))

        return self.header(network.id, block_hash).then(check)

    async def _lacks_records(self, network_id: int, block_hash: bytes) -> bool:
        rows = await self._connections.fetch(_RECORDED, [int8(network_id), block_hash])
        return not rows

    async def kept_data(self, network_id: int) -> KeptData:
        """Return the oldest blocks for which a network has each kind of data."""
        view = await self.head(network_id)
        checkpoint = view.checkpoint_number or 0
        rows = await self._connections.fetch(_KEPT, [int8(network_id), STATE_OWNER])
        if not rows:
            raise Unavailable("the network was removed")
        keep_proofs, version = (
            None if column is None else read_int8(column) for column in rows[0]
        )
        oldest_proof = await self._oldest_computed.get(network_id)
        if version is not None:
            oldest_proof = min(oldest_proof, max(version - 1, 0))
        return KeptData(
            oldest_block=kept_from(view),
            oldest_state=checkpoint,
            oldest_proof=max(oldest_proof, checkpoint),
            proof_blocks=keep_proofs or None,
        )

    async def _read_oldest_computed(self, view: NetworkView) -> int:
        """Return the oldest block whose tries may be computed from those of the head."""
        last, left, count = view.head_number or 0, proofs.MAX_CHANGES, _FIRST_BLOCKS
        while last > 0:
            before = max(last - count, 0)
            numbers = [view.id, before, last, left]
            ((oldest, changes),) = await self._connections.fetch(
                _CHANGES, list(map(int8, numbers))
            )
            if oldest is not None:
                return read_int8(oldest)
            left -= 0 if changes is None else read_int8(changes)
            last, count = before, 2 * count
        return 0
