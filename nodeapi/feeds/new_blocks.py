"""New blocks and logs of a network, read once for all subscriptions of a process to it.

A change of the head only triggers a query. The query reads the blocks after the last
block that was sent. Lost and repeated messages therefore have no effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Protocol

import orjson

from jsonrpc.stream import Stream
from networks.directory import Directory
from nodeapi.frames.close_codes import SUBSCRIPTION_FAILED
from nodeapi.frames.writer import FrameWriter
from nodeapi.logs.filter import LogSelection
from nodeapi.store import Store
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.statement import INT8, Row, Statement, int8, read_int8

logger = logging.getLogger(__name__)

MAX_SENT_BLOCKS = 1024
"""Number of sent blocks that are kept, in order to detect reorganisations. After a
deeper one, the feed sends the blocks that replace the kept ones."""

MAX_BLOCKS = 32
"""Maximum number of blocks that a query reads. Other tasks run before the next query."""

RETRY_SECONDS = 0.5
"""Pause after a query that failed."""

SWEEP_SECONDS = 5.0
"""Interval at which all feeds are refreshed even if no change was reported."""

MAX_RECEIPTS_BYTES = 64 * 2**20
"""Maximum size of a block's receipts that are searched for logs. With the gas limits in
use, no block has larger receipts."""

_NOT_HEADER = ("transactions", "uncles", "withdrawals", "size", "totalDifficulty")
"""Members of a block object that are not part of its header."""

_NEXT = Statement(
    """
    SELECT number, hash, document FROM nodeapi_block
    WHERE network_id = $1 AND is_canonical AND number >= $2
    ORDER BY number LIMIT $3
    """,
    [INT8.oid] * 3,
)
_CANONICAL = Statement(
    """
    SELECT number, hash FROM (
        SELECT number, hash FROM nodeapi_block
        WHERE network_id = $1 AND is_canonical AND number <= $2
        ORDER BY number DESC LIMIT $3
    ) AS newest ORDER BY number
    """,
    [INT8.oid] * 3,
)
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """A block that became canonical, or was removed by a reorganisation.

    number: of the block.
    head: the header as JSON. None for a removed block, of which only logs are sent.
    logs: pairs of a log object and its JSON; those of a removed block have
        `"removed": true`. Empty if no subscriber wants logs.
    read_at: the start of the query for the block, from `time.perf_counter_ns`.
    """

    number: int
    head: bytes | None
    logs: Sequence[tuple[dict[str, Any], bytes]]
    read_at: int


class Subscriber(Protocol):
    """A subscription to a network's heads or logs."""

    @property
    def audience(self) -> Audience:
        """The subscriptions of the same kind, which are checked together."""

    @property
    def logs(self) -> LogSelection | None:
        """The logs to send; None for a subscription to heads."""

    @property
    def writer(self) -> FrameWriter:
        """Sends frames to the client."""

    def send(self, result: bytes) -> None:
        """Send a head or a log, as JSON."""


class Audience(Protocol):
    """Subscribers of one kind, which are checked together before they get events."""

    async def prepare(
        self, subscribers: Sequence[Any]
    ) -> Callable[[Sequence[BlockEvent]], None]:
        """Check which subscribers may get events, and return a function that sends them.

        Called after the blocks were read. The function must not raise. If another audience
        fails, the function is not called, and all audiences get the events later.
        Raises: Unavailable.
        """


def send_events(
    subscribers: Iterable[Subscriber], events: Sequence[BlockEvent]
) -> None:
    """Send each subscriber the heads or matching logs, in the order of the events."""
    for event in events:
        for one in subscribers:
            selection = one.logs
            if selection is None:
                if event.head is not None:
                    one.send(event.head)
            elif selection.selects(event.number):
                for log, serialised in event.logs:
                    if selection.wanted.matches(log):
                        one.send(serialised)


class Feeds:
    """The feeds of a process, one for each network that has had subscribers."""

    def __init__(
        self, connections: Connections, store: Store, directory: Directory
    ) -> None:
        self._connections = connections
        self._store = store
        self._directory = directory
        self._feeds: dict[int, asyncio.Task[Feed]] = {}
        self._sweep: asyncio.Task[None] | None = None
        directory.subscribe(self._refresh)

    async def start(self) -> None:
        """Start the sweep."""
        self._sweep = asyncio.create_task(self._sweep_forever())

    async def stop(self) -> None:
        """Stop all feeds. Call it after the sockets were closed."""
        if self._sweep is not None:
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)
        for opening in list(self._feeds.values()):
            opening.cancel()
            for feed in await asyncio.gather(opening, return_exceptions=True):
                if isinstance(feed, Feed):
                    await feed.stop()

    async def get(self, network_id: int) -> Feed:
        """Return the started feed of a network.

        Raises: Unavailable.
        """
        opening = self._feeds.get(network_id)
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = asyncio.create_task(self._open(network_id))
            self._feeds[network_id] = opening
        return await asyncio.shield(opening)

    async def _open(self, network_id: int) -> Feed:
        feed = Feed(self._connections, self._store, network_id)
        await feed.start()
        return feed

    def _refresh(self) -> None:
        """Refresh all feeds, unless this process may have missed changes of keys."""
        if not self._directory.is_fresh:
            return
        for opening in self._feeds.values():
            if opening.done() and not opening.cancelled() and not opening.exception():
                opening.result().refresh()

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._refresh()


class Feed:
    """Sends a network's new heads and logs to subscriptions, in order, each once."""

    def __init__(self, connections: Connections, store: Store, network_id: int) -> None:
        self.subscribers: set[Subscriber] = set()
        self._connections = connections
        self._store = store
        self._network_id = network_id
        self._sent_blocks: deque[tuple[int, bytes]] = deque(maxlen=MAX_SENT_BLOCKS)
        self._is_due = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Mark all existing blocks as sent.

        Raises: Unavailable.
        """
        rows = await self._fetch(_CANONICAL, _NO_LIMIT, MAX_SENT_BLOCKS)
        self._sent_blocks.extend(map(_place, rows))

    async def stop(self) -> None:
        """Cancel the task that reads blocks, if it is running."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def join(self, subscriber: Subscriber) -> None:
        """Add a subscriber; it gets the blocks of later queries."""
        self.subscribers.add(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber."""
        self.subscribers.discard(subscriber)

    def refresh(self) -> None:
        """Schedule a query for new blocks."""
        self._is_due = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._is_due:
            self._is_due = False
            try:
                self._is_due = await self._send_new_blocks() or self._is_due
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
                self._is_due = True
            except Exception:
                logger.exception(
                    "new blocks of network %s could not be sent", self._network_id
                )
                await asyncio.sleep(RETRY_SECONDS)
                self._is_due = True
        self._task = None

    async def _send_new_blocks(self) -> bool:
        """Read and send new blocks; return whether there may be more.

        Subscribers are listed after the blocks were read. A subscriber that was added
        during the query gets its blocks, because the blocks may have been committed
        after the response to `eth_subscribe`.
        """
        began = perf_counter_ns()
        gone, rows = await self._new_blocks()
        subscribers = list(self.subscribers)
        if not gone and not rows:
            return False
        if subscribers:
            wants_logs = any(one.logs is not None for one in subscribers)
            events = await self._events(gone, rows, began, wants_logs=wants_logs)
            await self._send(subscribers, events)
        for _ in gone:
            self._sent_blocks.pop()
        self._sent_blocks.extend(map(_place, rows))
        return True

    async def _new_blocks(self) -> tuple[list[tuple[int, bytes]], list[Row]]:
        """Return the sent blocks that were removed since, and the rows to send next.

        Removed blocks are those that are no longer canonical, from the newest to the
        oldest.
        """
        if not self._sent_blocks:
            return [], await self._fetch(_NEXT, 0, MAX_BLOCKS)
        newest = self._sent_blocks[-1]
        rows = await self._fetch(_NEXT, newest[0], MAX_BLOCKS + 1)
        if rows and _place(rows[0]) == newest:
            return [], rows[1:]
        lowest = self._sent_blocks[0][0]
        depth = newest[0] - lowest + 1
        while True:
            canonical = await self._fetch(_CANONICAL, newest[0], depth)
            still = set(map(_place, canonical))
            gone = []
            kept = None
            for place in reversed(self._sent_blocks):
                if place in still:
                    kept = place
                    break
                gone.append(place)
            if kept is None:
                return gone, await self._fetch(_NEXT, lowest, MAX_BLOCKS)
            rows = await self._fetch(_NEXT, kept[0], MAX_BLOCKS + 1)
            if rows and _place(rows[0]) == kept:
                return gone, rows[1:]
            # Another reorganisation was committed between the two queries.

    async def _events(
        self,
        gone: list[tuple[int, bytes]],
        rows: list[Row],
        began: int,
        *,
        wants_logs: bool,
    ) -> list[BlockEvent]:
        events = []
        for number, block_hash in gone if wants_logs else ():
            logs = await self._logs(block_hash)
            removed = [{**log, "removed": True} for log in reversed(logs)]
            events.append(BlockEvent(number, None, _serialised(removed), began))
        for row in rows:
            header = orjson.loads(row[2] or b"")
            has_logs = header["logsBloom"].strip("0") != "x"
            for name in _NOT_HEADER:
                header.pop(name, None)
            logs = await self._logs(row[1] or b"") if wants_logs and has_logs else []
            number, head = read_int8(row[0] or b""), orjson.dumps(header)
            events.append(BlockEvent(number, head, _serialised(logs), began))
        return events

    async def _logs(self, block_hash: bytes) -> list[dict[str, Any]]:
        """Return a block's log objects, in order.

        Raises: Unavailable.
        """
        found = await self._store.block_receipts(self._network_id, block_hash)
        if isinstance(found, Stream):
            found = await self._whole(found)
        receipts = await asyncio.to_thread(orjson.loads, found or b"[]")
        return [log for receipt in receipts for log in receipt["logs"]]

    async def _whole(self, receipts: Stream) -> bytes:
        try:
            if receipts.size > MAX_RECEIPTS_BYTES:
                self._close_log_subscribers()
                return b"[]"
            return await receipts.read()
        finally:
            await receipts.aclose()

    def _close_log_subscribers(self) -> None:
        """Disconnect subscribers to logs, because they would miss logs otherwise."""
        for one in list(self.subscribers):
            if one.logs is not None:
                one.writer.close(SUBSCRIPTION_FAILED, "a block has too many logs")

    async def _send(
        self, subscribers: list[Subscriber], events: list[BlockEvent]
    ) -> None:
        """Send events to all subscribers, or to none if one audience fails."""
        by_audience: dict[Audience, list[Subscriber]] = {}
        for one in subscribers:
            by_audience.setdefault(one.audience, []).append(one)
        sends = [await each.prepare(members) for each, members in by_audience.items()]
        for send in sends:
            send(events)

    async def _fetch(self, statement: Statement, *numbers: int) -> list[Row]:
        parameters = [int8(self._network_id), *map(int8, numbers)]
        return await self._connections.fetch(statement, parameters)


def _serialised(logs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], bytes]]:
    return [(log, orjson.dumps(log)) for log in logs]


def _place(row: Row) -> tuple[int, bytes]:
    return read_int8(row[0] or b""), row[1] or b""
