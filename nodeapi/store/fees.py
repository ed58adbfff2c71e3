"""Fees: suggested tips, the fees of the next block, and the history of fees.

Source: go-ethereum eth/gasprice
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from evm.header_rules import next_base_fee
from evm.headers import Header, decode_header
from jsonrpc.later import Later
from networks.directory import NetworkView
from nodeapi.fees.history import blob_fee, empty_child, fee_history
from nodeapi.fees.tips import BlockTips, block_tips, unpack_tips
from nodeapi.store.base import Reads, Sources
from nodeapi.store.head_values import HeadValues
from nodeapi.store.transactions import TransactionReads
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, Statement, int8

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from evm.rules.fork import Fork


_SHORT_RANGE = 32
"""Maximum number of headers that are decoded without a thread. One takes 15 µs."""

_HEADER = """
    SELECT k.n, b.header FROM k JOIN nodeapi_block b
        ON b.network_id = k.network_id AND b.hash = k.hash
"""

_CANONICAL_HEADERS = Statement(
    "SELECT header FROM nodeapi_block WHERE network_id = $1 AND is_canonical"
    " AND number BETWEEN $2 AND $3 ORDER BY number",
    [INT8.oid] * 3,
)


class HeaderReads(Reads):
    """Reads of headers. All results fail with Unavailable."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._headers: Lookup[tuple[int, bytes], bytes] = Lookup(
            sources.connections,
            _HEADER,
            [("network_id", INT8), ("hash", BYTEA)],
            _header,
            is_immutable=True,
        )

    def header(self, network_id: int, block_hash: bytes) -> Later[Header | None]:
        """Return the header of any stored block, or None if the block is unknown."""
        found = Later.from_future(self._headers.get((network_id, block_hash)))
        return found.then(lambda raw: None if raw is None else decode_header(raw))

    async def canonical_headers(
        self, network_id: int, first: int, last: int
    ) -> list[Header]:
        """Return the headers of the canonical blocks first … last, in order.

        Blocks above the head are missing.
        """
        numbers = [int8(network_id), int8(first), int8(last)]
        rows = await self._connections.fetch(_CANONICAL_HEADERS, numbers)
        if len(rows) > _SHORT_RANGE:
            return await asyncio.to_thread(_decoded, rows)
        return _decoded(rows)

    async def existing_header(self, network_id: int, block_hash: bytes) -> Header:
        """Return the header of a block that was stored a moment ago.

        Raises: Unavailable if it has been removed since.
        """
        header = await self.header(network_id, block_hash)
        if header is None:
            raise Unavailable("the block was removed")
        return header


def _decoded(rows: list[Row]) -> list[Header]:
    return [decode_header(raw or b"") for (raw,) in rows]


def _header(row: Row) -> bytes:
    header = row[0]
    assert header is not None
    return header


_CONFIG = Statement(
    "SELECT convert_to((genesis -> 'config')::text, 'UTF8')"
    " FROM networks_network WHERE id = $1",
    [INT8.oid],
)


class ConfigReads(Reads):
    """Reads of networks' fork schedules."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._chain_configs = HeadValues(sources.directory, self._read_chain_config)

    def chain_config(self, network_id: int) -> Later[ChainConfig]:
        """Return a network's fork schedule, which is read again for each new head.

        Fails with Unavailable.
        """
        return self._chain_configs.get(network_id)

    async def _read_chain_config(self, view: NetworkView) -> ChainConfig:
        genesis = {"config": await self.genesis_config(view.id)}
        return await asyncio.to_thread(_parsed, genesis)

    def genesis_config(self, network_id: int) -> Later[dict[str, Any]]:
        """Return the `config` of the network's genesis.json, with the fork schedule.

        Fails with Unavailable.
        """
        rows = self._connections.fetch(_CONFIG, [int8(network_id)])
        return Later.from_future(rows).then(_config)


def _parsed(genesis: dict[str, Any]) -> ChainConfig:
    # Importing it loads the libraries of the precompiled contracts, once.
    from evm.chain_config import ChainConfig

    return ChainConfig.from_genesis(genesis)


def _config(rows: list[Row]) -> dict[str, Any]:
    ((config,),) = rows
    found: dict[str, Any] = orjson.loads(config or b"{}")
    return found


SAMPLE_BLOCKS = 20
"""Newest blocks that a suggested tip is computed from. Blocks with at most one sample are
replaced by older ones, up to twice as many blocks."""

PERCENTILE = 60
"""Percentile of the sampled tips that is suggested."""

FIRST_TIP = 1_000_000
"""Wei per gas. The suggestion until the first transactions are sampled."""

MAX_TIP = 500 * 10**9
"""Highest suggestion in wei per gas."""

_SHORT_BLOCK = 50
"""Maximum number of transactions of a block whose tips are computed without a thread."""

_LONG_HISTORY = 32
"""Blocks from which a history is computed in a thread."""


_GROUP = 32
"""Blocks whose tips are read together."""


@dataclass(frozen=True, slots=True)
class HeadFees:
    """Fees in wei per gas, as of the head. None before the fork that introduced them."""

    base_fee: int | None
    next_base_fee: int | None
    """Of the block after the head."""
    blob_fee: int | None


class FeeReads(HeaderReads, TransactionReads, ConfigReads):
    """Reads of fees. All results fail with Unavailable."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._last_tips: dict[int, int] = {}
        """Network id → the last suggested tip."""
        self._turn = asyncio.Lock()
        self._suggested_tips = HeadValues(sources.directory, self._suggest_tip)
        self._head_fees = HeadValues(sources.directory, self._read_head_fees)

    def suggested_tip(self, network_id: int) -> Later[int]:
        """Return a tip, in wei per gas, with which transactions are soon included."""
        return self._suggested_tips.get(network_id)

    def head_fees(self, network_id: int) -> Later[HeadFees]:
        """Return the fees of the head and of the block after it."""
        return self._head_fees.get(network_id)

    async def fee_history(
        self, view: NetworkView, first: int, last: int, percentiles: Sequence[float]
    ) -> bytes | None:
        """Return the result of eth_feeHistory for canonical blocks, as JSON.

        first, last: numbers of existing blocks. The number after the head's stands for
            the pending block, which has no transactions here.
        percentiles: in ascending order, weighted by gas used. If empty, rewards are
            omitted.
        Returns: None if the blocks have been removed since.
        """
        cache_key = ("fees", view.id, view.head_hash, first, last, *percentiles)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return cached
        head = view.head_number or 0
        headers = await self.canonical_headers(view.id, min(first, head), last)
        if not headers:
            return None
        tips = await self._tips_of(view.id, headers if percentiles else [])
        forks = [await self._blob_fork(view.id, header) for header in headers]
        has_base_fee = await self._has_base_fee_after(view.id, headers[-1])
        if last > head:
            headers.append(empty_child(headers[-1], forks[-1], has_base_fee))
            forks.append(forks[-1])
            tips += [BlockTips((), (), b"")] if percentiles else []
            shown = slice(first - headers[0].number, None)
            headers, forks, tips = headers[shown], forks[shown], tips[shown]

        def compute() -> bytes:
            rewards = [
                [block.reward(header.gas_used, each) for each in percentiles]
                for header, block in zip(headers, tips, strict=bool(percentiles))
            ]
            shown = rewards if percentiles else None
            return fee_history(headers, forks, shown, has_base_fee)

        is_long = len(headers) > _LONG_HISTORY
        answer = await asyncio.to_thread(compute) if is_long else compute()
        self._cache.put(cache_key, answer)
        return answer

    async def _suggest_tip(self, view: NetworkView) -> int:
        """Return the tip that is suggested under a view's head.

        A block without samples counts as one sample, the last suggestion.
        """
        last = self._last_tips.get(view.id, FIRST_TIP)
        number = view.head_number or 0
        oldest = max(number - SAMPLE_BLOCKS + 1, 1)
        sampled = await self._samples(view.id, oldest, number)
        blocks = deque(range(number, oldest - 1, -1))
        tips: list[int] = []
        while blocks:
            current = blocks.popleft()
            if current not in sampled:
                lowest = max(current - SAMPLE_BLOCKS + 1, 1)
                sampled |= await self._samples(view.id, lowest, current)
            found = sampled.get(current) or (last,)
            is_wanting = len(tips) + 1 + len(blocks) < 2 * SAMPLE_BLOCKS
            if len(found) == 1 and is_wanting and oldest > 1:
                oldest -= 1
                blocks.append(oldest)
            tips += found
        tips.sort()
        tip = min(tips[(len(tips) - 1) * PERCENTILE // 100] if tips else last, MAX_TIP)
        self._last_tips[view.id] = tip
        return tip

    async def _samples(
        self, network_id: int, first: int, last: int
    ) -> dict[int, tuple[int, ...]]:
        """Return the samples of canonical blocks by the blocks' numbers."""
        headers = await self.canonical_headers(network_id, first, last)
        tips = await self._tips_of(network_id, headers)
        return {
            header.number: block.samples
            for header, block in zip(headers, tips, strict=True)
        }

    async def _tips_of(
        self, network_id: int, headers: Sequence[Header]
    ) -> list[BlockTips]:
        """Return the tips of blocks, in order.

        Requests take turns after each group, so that a long one does not delay the others.
        """
        found: list[BlockTips] = []
        for start in range(0, len(headers), _GROUP):
            group = headers[start : start + _GROUP]
            async with self._turn:
                found += await asyncio.gather(
                    *(self._tips(network_id, header) for header in group)
                )
        return found

    async def _tips(self, network_id: int, header: Header) -> BlockTips:
        """Return the tips of a block, and cache them."""
        cache_key = ("tips", network_id, header.hash)
        cached = self._cache.get(cache_key)
        if cached is not None:
            return unpack_tips(cached)
        base_fee = header.base_fee_per_gas or 0
        receipts = await self.stored_receipts(network_id, header.hash)
        if len(receipts) > _SHORT_BLOCK:
            tips = await asyncio.to_thread(
                block_tips, receipts, base_fee, header.coinbase
            )
        else:
            tips = block_tips(receipts, base_fee, header.coinbase)
        self._cache.put(cache_key, tips.pack())
        return tips

    async def _read_head_fees(self, view: NetworkView) -> HeadFees:
        assert view.head_hash is not None
        header = await self.existing_header(view.id, view.head_hash)
        has_base_fee = await self._has_base_fee_after(view.id, header)
        fork = await self._blob_fork(view.id, header)
        return HeadFees(
            base_fee=header.base_fee_per_gas,
            next_base_fee=next_base_fee(header) if has_base_fee else None,
            blob_fee=None if fork is None else blob_fee(header, fork),
        )

    async def _has_base_fee_after(self, network_id: int, header: Header) -> bool:
        """Return whether the block after one with this header has a base fee."""
        if header.base_fee_per_gas is not None:
            return True
        config = await self.chain_config(network_id)
        return config.has_base_fee(header.number + 1)

    async def _blob_fork(self, network_id: int, header: Header) -> Fork | None:
        """Return the fork of a block with blob gas, otherwise None."""
        if header.excess_blob_gas is None:
            return None
        config = await self.chain_config(network_id)
        return config.fork_at(header.number, header.timestamp, is_merged=True)
