"""The HTTP edge: the endpoint on a real server, with simple replacements of the store.

Only for tests of the layers above the store. Results are tested with PostgreSQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from jsonrpc.dispatch import Limits
from jsonrpc.later import Later
from jsonrpc.stream import Stream
from keys.errors import KeyDisabled, KeyExpired, KeyInvalid, KeyRevoked
from keys.grants import Grant
from keys.permits import NO_PERMITS
from keys.unknown_keys import UnknownKeys
from networks.directory import NetworkView
from nodeapi.encoding import BlockReference
from nodeapi.endpoint.access import is_node_path
from nodeapi.endpoint.endpoint import Endpoint
from nodeapi.endpoint.responses import REFUSALS
from nodeapi.errors.blocks import HeaderForHashNotFound, HeaderNotFound, NotCanonical
from nodeapi.methods import registry
from nodeapi.tracing.jobs import TraceJob
from postgres.errors import Unavailable
from server.asgi import Receive, Scope, Send
from server.options import ServerOptions
from tests.support.applications import live
from tests.support.served import served

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
    """Keys by their plain text. The look-up of `later` needs I/O."""

    async def later(self) -> Grant:
        await asyncio.sleep(0)
        return Grant(1, "later", None, NO_PERMITS, None)

    def resolve(self, key: str, client: str | None = None) -> Later[Grant]:
        if key == "good":
            return Later(Grant(1, "good", None, NO_PERMITS, None))
        if key == "hive-only":
            return Later(Grant(2, "hive", frozenset({HIVE.id}), NO_PERMITS, None))
        if key == "later":
            return Later.from_coroutine(self.later())
        if key == "crash":
            raise KeyError("a bug")
        failures: dict[str, Exception] = {
            "revoked": KeyRevoked(7),
            "expired": KeyExpired(1_800_000_000.0),
            "disabled": KeyDisabled(),
            "outage": Unavailable("no database"),
        }
        return Later.failed(failures.get(key) or KeyInvalid())


class Directory:
    """Two networks, of which `hive` is the default."""

    def by_slug(self, slug: str) -> NetworkView | None:
        return {"hive": HIVE, "other": OTHER}.get(slug)

    def by_host(self, host: str) -> NetworkView | None:
        return OTHER if host == "other.test" else HIVE

    def retired(self, slug: str, host: str) -> str:
        return ""


class Store:
    """A store with one block and a few slots."""

    def head_number(self, network_id: int) -> Later[int]:
        return Later(HEAD)

    def block_by_hash(
        self, network_id: int, block_hash: bytes, full: bool, difficulty: bool
    ) -> Later[bytes | None]:
        if block_hash == SLOW_HASH:
            return Later.from_coroutine(asyncio.sleep(60, BLOCK))
        if block_hash == BROKEN_HASH:
            return Later.failed(Unavailable("no database"))
        return Later(BLOCK if block_hash == BLOCK_HASH else None)

    def block_by_number(
        self, network_id: int, number: int | str, full: bool, difficulty: bool
    ) -> Later[bytes | None]:
        return Later(BLOCK if number in ("latest", HEAD) else None)

    def transaction_by_block_hash_and_index(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Later[bytes | None]:
        return Later(TRANSACTION if (block_hash, index) == (BLOCK_HASH, 2) else None)

    def canonical_hash(self, network_id: int, number: int | str) -> Later[bytes | None]:
        return Later(BLOCK_HASH if number in ("latest", HEAD) else None)

    def transaction_by_hash(
        self, network_id: int, transaction: bytes
    ) -> Later[bytes | None]:
        return Later(TRANSACTION if transaction == TRANSACTION_HASH else None)

    def receipt(self, network_id: int, transaction: bytes) -> Later[bytes | None]:
        receipt = RECEIPT if transaction == TRANSACTION_HASH else None
        return Later.from_coroutine(asyncio.sleep(0, receipt))

    def block_receipts(
        self, network_id: int, block_hash: bytes, *, owner: Hashable = None
    ) -> Later[bytes | None]:
        known = {BLOCK_HASH: b"[" + RECEIPT + b"]", SIDE_HASH: b"[]"}
        return Later(known.get(block_hash))

    def storage_at(
        self, network_id: int, address: bytes, slot: int, block: BlockReference
    ) -> Later[bytes]:
        found = self.state_hash(network_id, block)
        return found.then(lambda _: slot.to_bytes(32))

    def storage_values(
        self,
        network_id: int,
        slots: Sequence[tuple[bytes, int]],
        block: BlockReference,
    ) -> Later[list[bytes]]:
        found = self.state_hash(network_id, block)
        return found.then(lambda _: [slot.to_bytes(32) for _, slot in slots])

    def state_hash(self, network_id: int, block: BlockReference) -> Later[bytes]:
        return Later.from_coroutine(self._resolve(network_id, block))

    async def _resolve(self, network_id: int, block: BlockReference) -> bytes:
        if block.number is not None and block.number > HEAD:
            raise HeaderNotFound
        if block.require_canonical and block.hash == SIDE_HASH:
            raise NotCanonical
        if block.hash not in (None, BLOCK_HASH, SIDE_HASH):
            raise HeaderForHashNotFound
        return block.hash or BLOCK_HASH


class Tracing:
    """Tracing without worker processes."""

    async def trace(
        self,
        job: TraceJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
    ) -> Stream:
        raise Unavailable("no workers")

    async def close(self) -> None:
        pass


class UsesAfterRevocation:
    """Collects reported values in memory."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, str | None]] = []

    def note(self, version_id: int, ip: str | None) -> None:
        self.noted.append((version_id, ip))


class Meter:
    """A meter that counts nothing."""

    def book(self, *call: object) -> None:
        pass

    def fail(self, *call: object) -> None:
        pass


class Service:
    """The service with these parts."""

    def __init__(self) -> None:
        self.grants = Grants()
        self.directory = Directory()
        self.store = Store()
        self.tracing = Tracing()
        self.relay = None
        self.filters = None
        self.values = None
        self.unknown_keys = UnknownKeys(per_minute=0)
        self.uses_after_revocation = UsesAfterRevocation()
        self.limiter = None
        self.meter = Meter()

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass


def edge(limits: Limits, max_body_bytes: int) -> Endpoint:
    """Return an endpoint with these parts."""
    return Endpoint(Service(), registry, limits=limits, max_body_bytes=max_body_bytes)


class Application:
    """An ASGI application whose node requests an endpoint answers."""

    def __init__(self, endpoint: Endpoint, **options: Any) -> None:
        self.server_options = ServerOptions(
            handler=endpoint, is_node_path=is_node_path, refusals=REFUSALS, **options
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (live(receive, send) if scope["type"] == "lifespan" else _not_found(send))


async def _not_found(send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def serve(endpoint: Endpoint) -> Iterator[str]:
    """Serve an endpoint on a free port of its own; yields the base URL."""
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        served(monkeypatch, Application(endpoint)) as service,
        service() as connection,
    ):
        yield f"http://127.0.0.1:{connection.getpeername()[1]}"
