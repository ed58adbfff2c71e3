"""The HTTP edge alone: the endpoint behind a real server, with little behind it.

Only for tests of what stands in front of the store; answers are tested on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Hashable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn

from jsonrpc.dispatch import Limits
from jsonrpc.stream import Stream
from keys.errors import KeyDisabled, KeyExpired, KeyInvalid, KeyRevoked
from keys.grants import Grant
from keys.permits import NO_PERMITS
from keys.strangers import Strangers
from networks.directory import NetworkView
from nodeapi.encoding import BlockReference
from nodeapi.endpoint import Endpoint
from nodeapi.errors import HeaderForHashNotFound, HeaderNotFound, NotCanonical
from nodeapi.methods import registry
from nodeapi.tracing.jobs import TraceJob
from postgres.errors import Unavailable

BLOCK_HASH = b"\xab" * 32
BLOCK = (
    b'{"number":"0x5","extraData":"0x'
    + b"00" * 1000
    + b'","uncles":["0x11","0x12"],"transactions":["0x21","0x22","0x23"]}'
)
SIDE_HASH = b"\xba" * 32
TRANSACTION = b'{"transactionIndex":"0x2"}'
TRANSACTION_HASH = b"\x23" * 32
RECEIPT = b'{"status":"0x1"}'
HEAD = 5
SLOW_HASH = b"\xcd" * 32
BROKEN_HASH = b"\xee" * 32


def network(network_id: int, slug: str, host: str) -> NetworkView:
    return NetworkView(
        id=network_id,
        slug=slug,
        name=slug.title(),
        chain_id=network_id + 0x100,
        tracers=frozenset(),
        emit_total_difficulty=True,
        head_number=HEAD,
        head_hash=BLOCK_HASH,
        safe_hash=BLOCK_HASH,
        finalized_hash=BLOCK_HASH,
        host_names=frozenset({host}),
    )


HIVE = network(1, "hive", "hive.test")
OTHER = network(2, "other", "other.test")


class Grants:
    """Keys by their plain text; `later` has to be waited for."""

    async def later(self) -> Grant:
        await asyncio.sleep(0)
        return Grant(1, "later", None, NO_PERMITS, None)

    def resolve(self, key: str) -> Grant | Awaitable[Grant]:
        if key == "good":
            return Grant(1, "good", None, NO_PERMITS, None)
        if key == "hive-only":
            return Grant(2, "hive", frozenset({HIVE.id}), NO_PERMITS, None)
        if key == "later":
            return self.later()
        if key == "crash":
            raise KeyError("a bug")
        raise {
            "revoked": KeyRevoked(7),
            "expired": KeyExpired(1_800_000_000.0),
            "disabled": KeyDisabled(),
            "outage": Unavailable("no database"),
        }.get(key, KeyInvalid())

    def remembers(self, key: str) -> bool:
        return key in ("good", "hive-only")


class Directory:
    """Two networks, of which `hive` is the default."""

    def by_slug(self, slug: str) -> NetworkView | None:
        return {"hive": HIVE, "other": OTHER}.get(slug)

    def by_host(self, host: str) -> NetworkView | None:
        return OTHER if host == "other.test" else HIVE


class Store:
    """One block and a few slots."""

    def head_number(self, network_id: int) -> int:
        return HEAD

    def block_by_hash(
        self, network_id: int, block_hash: bytes, full: bool, difficulty: bool
    ) -> bytes | Awaitable[bytes | None] | None:
        if block_hash == SLOW_HASH:
            return asyncio.sleep(60, BLOCK)
        if block_hash == BROKEN_HASH:
            raise Unavailable("no database")
        return BLOCK if block_hash == BLOCK_HASH else None

    def block_by_number(
        self, network_id: int, number: int | str, full: bool, difficulty: bool
    ) -> bytes | None:
        return BLOCK if number in ("latest", HEAD) else None

    def transaction_by_block_hash_and_index(
        self, network_id: int, block_hash: bytes, index: int
    ) -> bytes | None:
        return TRANSACTION if (block_hash, index) == (BLOCK_HASH, 2) else None

    def canonical_hash(self, network_id: int, number: int | str) -> bytes | None:
        return BLOCK_HASH if number in ("latest", HEAD) else None

    def transaction_by_hash(self, network_id: int, transaction: bytes) -> bytes | None:
        return TRANSACTION if transaction == TRANSACTION_HASH else None

    async def receipt(self, network_id: int, transaction: bytes) -> bytes | None:
        return RECEIPT if transaction == TRANSACTION_HASH else None

    def block_receipts(self, network_id: int, block_hash: bytes) -> bytes | None:
        known = {BLOCK_HASH: b"[" + RECEIPT + b"]", SIDE_HASH: b"[]"}
        return known.get(block_hash)

    async def storage_at(
        self, network_id: int, address: bytes, slot: int, block: BlockReference
    ) -> bytes:
        await self.resolve_state(network_id, block)
        return slot.to_bytes(32)

    async def storage_values(
        self,
        network_id: int,
        slots: Sequence[tuple[bytes, int]],
        block: BlockReference,
    ) -> list[bytes]:
        await self.resolve_state(network_id, block)
        return [slot.to_bytes(32) for _, slot in slots]

    async def resolve_state(self, network_id: int, block: BlockReference) -> None:
        if block.number is not None and block.number > HEAD:
            raise HeaderNotFound
        if block.require_canonical and block.hash == SIDE_HASH:
            raise NotCanonical
        if block.hash not in (None, BLOCK_HASH, SIDE_HASH):
            raise HeaderForHashNotFound


class Tracing:
    """Nothing that could execute anything."""

    async def trace(self, job: TraceJob, owner: Hashable) -> Stream:
        raise Unavailable("no workers")

    async def close(self) -> None:
        pass


class LateUses:
    """Keeps in memory what it is told."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, str | None]] = []

    def note(self, version_id: int, ip: str | None) -> None:
        self.noted.append((version_id, ip))


class Service:
    """All of it."""

    def __init__(self) -> None:
        self.grants = Grants()
        self.directory = Directory()
        self.store = Store()
        self.tracing = Tracing()
        self.strangers = Strangers(per_minute=0)
        self.late_uses = LateUses()
        self.limiter = None
        self.meter = None

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass


def edge(limits: Limits, max_body_bytes: int) -> Endpoint:
    """Return an endpoint."""
    return Endpoint(Service(), registry, limits=limits, max_body_bytes=max_body_bytes)


@contextmanager
def serve(endpoint: Endpoint) -> Iterator[str]:
    """Serve an endpoint on a free port of its own; yields the base URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        endpoint,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="warning",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
