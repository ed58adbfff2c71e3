"""Reads of logs: of one block from its receipts, of a range through the log index.

The index only names the transactions with matching logs. The logs are those of the
stored receipts, and are compared with the filter before they are returned.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Hashable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from jsonrpc.errors import InvalidParams
from jsonrpc.later import DONE, Later
from jsonrpc.turns import LoopTurns, Turns
from networks.directory import NetworkView
from nodeapi.documents.receipts import (
    HEAD_BYTES,
    log_documents,
    log_members,
    receipt_size,
    split_logs,
)
from nodeapi.errors.blocks import TaggedBlockNotFound, TaggedHeaderNotFound
from nodeapi.errors.logs import LogSearchTimedOut, TooManyLogs
from nodeapi.logs.filter import LogFilter
from nodeapi.logs.keys import MAX_TOPICS, POSITION_BITS, event_key, key
from nodeapi.results.answers import Answer
from nodeapi.results.spool import Spool
from nodeapi.store import log_queries
from nodeapi.store.base import Sources, require_stored, tagged_hash
from nodeapi.store.trace_streams import GROUP_BYTES, GROUP_TRANSACTIONS
from nodeapi.store.traces import SHORT_BYTES
from nodeapi.store.transactions import (
    SHORT_RECEIPTS_BYTES,
    StoredReceipt,
    TransactionReads,
    at_hand,
    receipts_with_heads,
)
from postgres.connections import Connections
from postgres.errors import TimedOut, Unavailable
from postgres.statement import (
    INT8,
    Row,
    Statement,
    array,
    int8,
    read_int8,
    read_int8_array,
)

MAX_LOGS = 10_000
"""Maximum number of logs that a search in several blocks returns; Infura's limit."""

COMPARED_ROWS = 1_000
"""Number of rows up to which the drivers of a search are compared."""

MAX_EVENTS = 1_000
"""Maximum number of combinations of addresses and first topics that are searched for as
combinations."""

_TURN_BYTES = 2**17
"""Size of the logs that are compared with a filter in one turn on the event loop: about a
millisecond."""

_TURN_LOGS = 300
"""Number of logs that are compared with a filter in one turn on the event loop."""

_RECEIPT_BYTES = 2**11
"""A receipt takes at least as long as logs of this size, because it is decompressed."""

_ADVICE = "request fewer blocks"


@dataclass(frozen=True, slots=True)
class _Found:
    """A transaction with logs that probably match."""

    block_id: int
    transaction_index: int
    weight: int
    """Size of its packed receipt in bytes."""


class LogReads(TransactionReads):
    """Reads of logs.

    log_connections: for searches, which may take longer than look-ups.
    max_logs: maximum number of logs that a search returns.
    """

    log_connections: Connections
    max_logs: int = MAX_LOGS

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self.log_connections = sources.connections
        self.log_searches = Turns(sources.connections.size)
        """Searches in several blocks, each of which needs a connection again and again."""
        self._turns = LoopTurns()

    def logs_of_block(
        self,
        network_id: int,
        block_hash: bytes,
        wanted: LogFilter,
        *,
        owner: Hashable = None,
    ) -> Later[Answer | None]:
        """Return the matching logs of a block, canonical or not, as an array.

        None if there is no such block.
        owner: the account that a long result counts for until it has been read.
        """
        answer = self._cache.get(("logs", network_id, block_hash, wanted.digest()))
        if answer is not None:
            return Later(answer)
        logs = self._cache.get(("logs", network_id, block_hash))
        if logs is not None:
            block = (network_id, block_hash)
            return self._matching_array(block, logs, wanted, owner)
        found = Later.from_future(self._block_receipts.get((network_id, block_hash)))
        return found.then(
            partial(self._logs_in_row, (network_id, block_hash), wanted, owner)
        )

    def logs_between(
        self,
        network_id: int,
        first: int,
        last: int,
        wanted: LogFilter,
        *,
        owner: Hashable = None,
    ) -> Later[Answer]:
        """Return the matching logs of canonical blocks as an array, in order.

        first, last: numbers of the first and the last block.
        owner: the account that a long result counts for until it has been read.

        Fails with TooManyLogs or LogSearchTimedOut.
        """
        return Later.from_coroutine(
            self._logs_between(network_id, first, last, wanted, owner)
        )

    async def log_range(
        self, network_id: int, first: int | str, last: int | str
    ) -> tuple[int, int]:
        """Return the numbers of the first and the last block of a search.

        first, last: numbers or tags other than `pending`.

        Raises: InvalidParams if the range is empty or exceeds the chain; HistoryPruned if
            it begins below the oldest stored block; TaggedHeaderNotFound; Unavailable if
            the network has no blocks.
        """
        view = await self._directory.current(network_id)
        numbers = [n for n in (first, last) if isinstance(n, int)]
        if view.head_number is None or max(numbers, default=0) > view.head_number:
            # Another process may have reported a newer head.
            view = await self._directory.reread(network_id)
        if view.head_number is None:
            raise Unavailable("the network has no blocks yet")
        start = await self._number_in(view, first)
        end = await self._number_in(view, last)
        # geth takes latest for a number above all others, until both ends are known.
        if start > end or (first == "latest" and last != "latest"):
            raise InvalidParams("invalid block range params")
        if end > view.head_number:
            raise InvalidParams("block range extends beyond current head block")
        if start == end == 0:
            return start, end
        require_stored(view, max(start, 1))
        return start, end

    async def _number_in(self, view: NetworkView, block: int | str) -> int:
        """Return the number of a block of the chain with a view's head."""
        if isinstance(block, int):
            return block
        if block == "earliest":
            return 0
        if block == "latest":
            return view.head_number or 0
        try:
            block_hash = tagged_hash(view, block)
        except TaggedBlockNotFound as error:
            raise TaggedHeaderNotFound(block) from error
        if block_hash == view.head_hash:
            return view.head_number or 0
        cache_key = ("height", view.id, block_hash)
        cached = self._cache.get(cache_key)
        if cached is None:
            rows = await self._connections.fetch(
                log_queries.NUMBER, [int8(view.id), block_hash or b""]
            )
            if not rows:
                raise TaggedHeaderNotFound(block)
            cached = rows[0][0] or b""
            self._cache.put(cache_key, cached)
        return read_int8(cached)

    async def _logs_between(
        self,
        network_id: int,
        first: int,
        last: int,
        wanted: LogFilter,
        owner: Hashable,
    ) -> Answer:
        async with self.log_searches.place(owner):
            rows = await self._search(network_id, first, last, wanted)
            if len(rows) > self.max_logs:
                beyond = read_int8(rows[self.max_logs][0] or b"") >> POSITION_BITS
                raise TooManyLogs(self.max_logs, first, max(first, beyond - 1))
            await self._turns.wait(owner)
            receipts = self._receipts_at(_transactions(rows))
            return await self._collected(receipts, wanted, owner)

    def _logs_in_row(
        self,
        block: tuple[int, bytes],
        wanted: LogFilter,
        owner: Hashable,
        row: Row | None,
    ) -> Later[Answer | None]:
        """Return the matching logs of a block, and cache all its logs if they are short."""
        if row is None:
            return DONE
        block_id, weights = read_int8(row[0] or b""), read_int8_array(row[1] or b"")
        if sum(weights) > SHORT_RECEIPTS_BYTES:
            receipts = self._receipts_in_groups(block_id, weights)
            return Later.from_coroutine(self._collected(receipts, wanted, owner))
        pairs = receipts_with_heads(row[2:])
        if sum(itertools.starmap(receipt_size, pairs)) > SHORT_BYTES:
            return Later.from_coroutine(self._collected(at_hand(pairs), wanted, owner))
        logs = b",".join(filter(None, itertools.starmap(log_documents, pairs)))
        self._cache.put(("logs", *block), logs)
        return self._matching_array(block, logs, wanted, owner)

    def _matching_array(
        self,
        block: tuple[int, bytes],
        logs: bytes,
        wanted: LogFilter,
        owner: Hashable,
    ) -> Later[Answer | None]:
        """Return the logs of a block that match as an array, and cache it.

        logs: separated by commas. An array of all logs is not cached beside them.
        """
        if wanted.matches_all:
            return Later(b"[%s]" % logs)
        texts = split_logs(logs)
        if len(logs) > _TURN_BYTES:
            return Later.from_coroutine(
                self._matching_in_turns(block, texts, wanted, owner)
            )
        return Later(self._array(block, _matching(texts, wanted), wanted))

    async def _matching_in_turns(
        self,
        block: tuple[int, bytes],
        logs: list[bytes],
        wanted: LogFilter,
        owner: Hashable,
    ) -> Answer:
        found = []
        for start in range(0, len(logs), _TURN_LOGS):
            await self._turns.wait(owner)
            found += _matching(logs[start : start + _TURN_LOGS], wanted)
        return self._array(block, found, wanted)

    def _array(
        self, block: tuple[int, bytes], logs: list[bytes], wanted: LogFilter
    ) -> bytes:
        """Return matching logs as an array, and cache it."""
        answer = b"[%s]" % b",".join(logs)
        self._cache.put(("logs", *block, wanted.digest()), answer)
        return answer

    async def _collected(
        self,
        receipts: AsyncGenerator[StoredReceipt, None],
        wanted: LogFilter,
        owner: Hashable,
    ) -> Answer:
        """Return the matching logs of receipts as an array, compared in turns."""
        spool = Spool(SHORT_BYTES, self.spooled, owner)
        try:
            separator = b"["
            left = 0
            async with aclosing(receipts):
                async for receipt, head in receipts:
                    left -= _RECEIPT_BYTES
                    for log in split_logs(log_documents(receipt, head)):
                        if left <= 0:
                            await self._turns.wait(owner)
                            left = _TURN_BYTES
                        left -= len(log)
                        if wanted.matches_members(*log_members(log)):
                            spool.write(separator + log)
                            separator = b","
            spool.write(b"]" if separator == b"," else b"[]")
            return spool.answer(_ADVICE)
        except BaseException:
            spool.close()
            raise

    async def _search(
        self, network_id: int, first: int, last: int, wanted: LogFilter
    ) -> list[Row]:
        """Return the rows of the index that match, at most one more than allowed.

        Raises: LogSearchTimedOut.
        """
        keys = _keys(wanted)
        present = f"topic{len(wanted.topics) - 1}" if wanted.topics else ""
        limit = int8(self.max_logs + 1)
        try:
            if not keys:
                start, end = first << POSITION_BITS, ((last + 1) << POSITION_BITS) - 1
                return await self._fetch_logs(
                    log_queries.scan(present),
                    [int8(network_id), int8(start), int8(end), limit],
                )
            blocks = [int8(network_id), int8(first), int8(last)]
            driver = await self._driver(blocks, keys)
            others = tuple(name for name in keys if name != driver)
            return await self._fetch_logs(
                log_queries.search(driver, others, present),
                [
                    *blocks,
                    limit,
                    *(_int8_array(keys[name]) for name in (driver, *others)),
                ],
            )
        except TimedOut as error:
            raise LogSearchTimedOut from error

    async def _driver(self, blocks: list[bytes], keys: dict[str, list[int]]) -> str:
        """Return the column with the fewest rows in the blocks."""
        if len(keys) == 1:
            return next(iter(keys))
        (row,) = await self._fetch_logs(
            log_queries.counts(tuple(keys)),
            [*blocks, int8(COMPARED_ROWS), *map(_int8_array, keys.values())],
        )
        counts = [read_int8(column or b"") for column in row]
        return min(zip(counts, itertools.count(), keys, strict=False))[2]

    async def _fetch_logs(
        self, statement: Statement, parameters: list[bytes]
    ) -> list[Row]:
        return await self.log_connections.fetch(statement, parameters)

    async def _receipts_at(
        self, found: list[_Found]
    ) -> AsyncGenerator[StoredReceipt, None]:
        """Read the receipts of transactions, a group at a time."""
        for group in _groups(found):
            ids = [one.block_id for one in group]
            indexes = [one.transaction_index for one in group]
            rows = await self._fetch_logs(
                _RECEIPTS, [_int8_array(ids), _int8_array(indexes)]
            )
            if len(rows) != len(group):
                raise Unavailable("blocks have gone while their logs were read")
            for receipt, head in rows:
                yield receipt or b"", head or b""


_RECEIPTS = log_queries.receipts(HEAD_BYTES)


def _keys(wanted: LogFilter) -> dict[str, list[int]]:
    """Return the columns of the index that a filter restricts, with their keys.

    The column `event` replaces `address` and `topic0` if it can. The first columns
    usually have the fewest rows.
    """
    found: dict[str, list[int]] = {}
    for position in reversed(range(1, MAX_TOPICS)):
        topics = wanted.topic_bytes(position)
        if topics is not None:
            found[f"topic{position}"] = [*map(key, topics)]
    addresses, topics = wanted.address_bytes(), wanted.topic_bytes(0)
    if addresses and topics and len(addresses) * len(topics) <= MAX_EVENTS:
        found["event"] = [
            event
            for address, topic in itertools.product(addresses, topics)
            if (event := event_key(address, [topic])) is not None
        ]
        return found
    if addresses is not None:
        found["address"] = [*map(key, addresses)]
    if topics is not None:
        found["topic0"] = [*map(key, topics)]
    return found


def _int8_array(values: list[int]) -> bytes:
    return array(INT8, values, len(values))


def _transactions(rows: Iterable[Row]) -> list[_Found]:
    """Return the transactions of the rows of a search, each once, in order."""
    found: dict[_Found, None] = {}
    for row in rows:
        _, index, block_id, weight = (read_int8(column or b"") for column in row)
        found[_Found(block_id, index, weight)] = None
    return [*found]


def _groups(found: list[_Found]) -> Iterator[list[_Found]]:
    """Yield transactions whose receipts are read together."""
    group: list[_Found] = []
    weight = 0
    for one in found:
        is_full = weight + one.weight > GROUP_BYTES or len(group) >= GROUP_TRANSACTIONS
        if group and is_full:
            yield group
            group, weight = [], 0
        group.append(one)
        weight += one.weight
    if group:
        yield group


def _matching(logs: list[bytes], wanted: LogFilter) -> list[bytes]:
    return [log for log in logs if wanted.matches_members(*log_members(log))]
