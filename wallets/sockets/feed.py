"""What comes new on a chain, read once for all who have subscribed to it.

An event says "look", the database says what: each look reads on from the block that was
handed out last. So it makes no difference how many blocks came, or how many events.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from jsonrpc.stream import Stream
from nodeapi.store.base import settled
from postgres.errors import Unavailable
from postgres.statement import INT8, Row, Statement, array, int8, read_int8
from wallets.service import Wallet
from wallets.sockets.outbox import GOING_ON_IS_FUTILE
from wallets.sockets.room import Room
from wallets.sockets.subscriptions import Subscription

logger = logging.getLogger(__name__)

REMEMBERED = 1024
"""Blocks that are remembered as handed out; a deeper reorganisation is taken up there."""

AT_ONCE = 32
"""Blocks that one look hands out before others have their turn."""

RETRY_SECONDS = 0.5
"""Pause after a look that failed."""

MAX_RECEIPTS_BYTES = 64 * 2**20
"""Receipts of a block that are searched for logs; no gas limit in use allows as much."""

_NOT_HEADER = ("transactions", "uncles", "withdrawals", "size", "totalDifficulty")
"""What a block object has beside its header."""

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
_VERSIONS = Statement(
    "SELECT dapp_id, version FROM wallets_session WHERE dapp_id = ANY($1)",
    [INT8.array_oid],
)
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class News:
    """A block that has come, or gone: then only its logs are told of.

    head: the header as JSON. logs: each as an object.
    """

    head: bytes | None
    logs: list[dict[str, Any]]


class Feed:
    """Hands out a network's new heads and logs, in order, each once."""

    def __init__(self, wallet: Wallet, network_id: int) -> None:
        self.subscriptions: set[Subscription] = set()
        self._wallet = wallet
        self._network_id = network_id
        self._handed_out: deque[tuple[int, bytes]] = deque(maxlen=REMEMBERED)
        self._is_due = False
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take all blocks that are there for handed out.

        Raises: Unavailable.
        """
        rows = await self._fetch(_CANONICAL, _NO_LIMIT, REMEMBERED)
        self._handed_out.extend(map(_place, rows))

    async def stop(self) -> None:
        """End a look that is under way."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def join(self, subscription: Subscription) -> None:
        """Hand out to one more, from the next look on."""
        self.subscriptions.add(subscription)

    def leave(self, subscription: Subscription) -> None:
        """Hand out to one less."""
        self.subscriptions.discard(subscription)

    def look(self) -> None:
        """Look soon: there may be new blocks."""
        self._is_due = True
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        while self._is_due:
            self._is_due = False
            try:
                self._is_due = await self._hand_out() or self._is_due
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
                self._is_due = True
            except Exception:
                logger.exception("blocks of network %s not told of", self._network_id)
                await asyncio.sleep(RETRY_SECONDS)
                self._is_due = True
        self._looking = None

    async def _hand_out(self) -> bool:
        """Hand out what is new; return whether there may be more.

        Who subscribes once the blocks are read came after them, and gets the next ones;
        who does so while they are being read may have come before.
        """
        gone, rows = await self._new_blocks()
        wanted = list(self.subscriptions)
        if not gone and not rows:
            return False
        news: list[News] = []
        if wanted:
            news = await self._news(wanted, gone, rows)
            await self._send(wanted, news)
        for _ in gone:
            self._handed_out.pop()
        self._handed_out.extend(map(_place, rows))
        return True

    async def _new_blocks(self) -> tuple[list[tuple[int, bytes]], list[Row]]:
        """Return what was handed out and is canonical no more, and what comes now.

        The former newest first.
        """
        if not self._handed_out:
            return [], await self._fetch(_NEXT, 0, AT_ONCE)
        newest = self._handed_out[-1]
        rows = await self._fetch(_NEXT, newest[0], AT_ONCE + 1)
        if rows and _place(rows[0]) == newest:
            return [], rows[1:]
        lowest = self._handed_out[0][0]
        depth = newest[0] - lowest + 1
        canonical = await self._fetch(_CANONICAL, newest[0], depth)
        still = set(map(_place, canonical))
        gone = []
        for place in reversed(self._handed_out):
            if place in still:
                break
            gone.append(place)
        first = gone[-1][0] if gone else newest[0] + 1
        return gone, await self._fetch(_NEXT, first, AT_ONCE)

    async def _news(
        self,
        wanted: list[Subscription],
        gone: list[tuple[int, bytes]],
        rows: list[Row],
    ) -> list[News]:
        wants_logs = any(one.log_filter is not None for one in wanted)
        news = []
        for _, block_hash in gone if wants_logs else ():
            logs = await self._logs(block_hash)
            removed = [{**log, "removed": True} for log in reversed(logs)]
            news.append(News(None, removed))
        for row in rows:
            header = orjson.loads(row[2] or b"")
            has_logs = header["logsBloom"].strip("0") != "x"
            for name in _NOT_HEADER:
                header.pop(name, None)
            logs = await self._logs(row[1] or b"") if wants_logs and has_logs else []
            news.append(News(orjson.dumps(header), logs))
        return news

    async def _logs(self, block_hash: bytes) -> list[dict[str, Any]]:
        """Return a block's logs, in order.

        Raises: Unavailable.
        """
        store = self._wallet.node.store
        found = await settled(store.block_receipts(self._network_id, block_hash))
        if isinstance(found, Stream):
            found = await self._whole(found)
        receipts = await asyncio.to_thread(orjson.loads, found or b"[]")
        return [log for receipt in receipts for log in receipt["logs"]]

    async def _whole(self, receipts: Stream) -> bytes:
        try:
            if receipts.size > MAX_RECEIPTS_BYTES:
                self._give_up_logs()
                return b"[]"
            return await receipts.read()
        finally:
            await receipts.aclose()

    def _give_up_logs(self) -> None:
        """Disconnect those who would miss logs: none is left out in silence."""
        for one in list(self.subscriptions):
            if one.log_filter is not None:
                one.peer.outbox.close(GOING_ON_IS_FUTILE, "a block has too many logs")

    async def _send(self, wanted: list[Subscription], news: list[News]) -> None:
        """Send to all whose session is the one that is known.

        The versions are read after the blocks. A session that was changed before these
        came is looked at first, even if that was not heard of yet.
        """
        by_room: dict[Room, list[Subscription]] = {}
        for subscription in wanted:
            by_room.setdefault(subscription.peer.room, []).append(subscription)
        ids = array(INT8, (room.dapp_id for room in by_room), len(by_room))
        rows = await self._wallet.node.connections.fetch(_VERSIONS, [ids])
        versions = {read_int8(r[0] or b""): read_int8(r[1] or b"") for r in rows}
        serialised = [(one, [orjson.dumps(log) for log in one.logs]) for one in news]
        for room, subscriptions in by_room.items():
            if versions.get(room.dapp_id) != room.session.version:
                room.look()
            room.when_settled(_Delivery(subscriptions, serialised))

    async def _fetch(self, statement: Statement, *numbers: int) -> list[Row]:
        parameters = [int8(self._network_id), *map(int8, numbers)]
        return await self._wallet.node.connections.fetch(statement, parameters)


@dataclass(frozen=True, slots=True)
class _Delivery:
    """News on their way to the subscriptions of a room; logs also as JSON."""

    subscriptions: list[Subscription]
    news: list[tuple[News, list[bytes]]]

    def __call__(self) -> None:
        for item, logs in self.news:
            for one in self.subscriptions:
                if one.log_filter is None:
                    if item.head is not None:
                        one.send(item.head)
                else:
                    for log, serialised in zip(item.logs, logs, strict=True):
                        if one.log_filter.matches(log):
                            one.send(serialised)


def _place(row: Row) -> tuple[int, bytes]:
    return read_int8(row[0] or b""), row[1] or b""
