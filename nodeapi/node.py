"""The parts of a serving process that answer requests, and how they start and stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from channels.layers import channel_layers
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from keys.grants import Grants
from keys.limiter.buckets import Buckets
from keys.limiter.limiter import Limiter
from keys.metering.meter import Meter
from keys.unknown_keys import UnknownKeys
from keys.use_after_revocation import UsesAfterRevocation
from networks.directory import Directory
from nodeapi.feeds.new_blocks import Feeds
from nodeapi.feeds.pending import PendingFeed
from nodeapi.feeds.syncing import SyncingFeed
from nodeapi.filters.filters import Filters
from nodeapi.filters.pending import PendingFilters
from nodeapi.filters.storage import FilterStorage
from nodeapi.mempool.arrivals import Arrivals
from nodeapi.mempool.local import LocalPool
from nodeapi.proofs.reads import ValueReader
from nodeapi.relay.receipt_waits import ReceiptWaits
from nodeapi.relay.relay import Relay
from nodeapi.store import Store
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.pool_limits import PoolLimits
from nodeapi.upstreams.pool import UpstreamPool
from outbox.subscriber import Subscriber
from postgres.connections import Connections


@dataclass(frozen=True, slots=True)
class Node:
    """The parts that answer requests, without the HTTP edge."""

    connections: Connections
    log_connections: Connections
    subscriber: Subscriber
    directory: Directory
    grants: Grants
    store: Store
    tracing: TracePool
    upstreams: UpstreamPool
    relay: Relay
    pending_feed: PendingFeed
    unknown_keys: UnknownKeys
    uses_after_revocation: UsesAfterRevocation
    filters: Filters
    limiter: Limiter
    meter: Meter
    feeds: Feeds
    syncing: SyncingFeed
    values: ValueReader

    async def start(self) -> None:
        """Start reading the outbox, read the networks, and start a trace worker.

        Also works while the database is down.
        """
        await self.tracing.start()
        await self.subscriber.start()
        await self.directory.start()
        await self.limiter.start()
        await self.meter.start()
        await self.feeds.start()

    async def stop(self) -> None:
        """Close all connections."""
        await self.feeds.stop()
        await self.syncing.close()
        await self.subscriber.stop()
        await self.directory.stop()
        await self.tracing.close()
        await self.pending_feed.close()
        await self.relay.close()
        await self.values.close()
        await self.upstreams.close()
        await self.uses_after_revocation.close()
        await self.filters.close()
        await self.limiter.stop()
        await self.meter.stop()
        await self.log_connections.close()
        await self.connections.close()


def build_node(conninfo: str | None = None) -> Node:
    """Create all parts, without any connection before `start`.

    conninfo: connection string of libpq. If None, the project's database is used.
    """
    address = database_conninfo() if conninfo is None else conninfo
    connections = Connections(
        address,
        size=settings.NODEAPI_DATABASE_CONNECTIONS,
        query_timeout=settings.NODEAPI_QUERY_TIMEOUT,
    )
    log_connections = Connections(
        make_conninfo(address, options=_log_options(address)),
        size=settings.NODEAPI_LOG_CONNECTIONS,
        query_timeout=settings.NODEAPI_QUERY_TIMEOUT,
    )
    limits = PoolLimits(
        workers=settings.NODEAPI_TRACE_WORKERS,
        per_key=settings.NODEAPI_TRACE_CONCURRENCY,
        seconds=settings.NODEAPI_TRACE_SECONDS,
        memory_bytes=settings.NODEAPI_TRACE_MEMORY_BYTES,
        result_bytes=settings.NODEAPI_TRACE_RESULT_BYTES,
        spool_bytes=settings.NODEAPI_TRACE_SPOOL_BYTES,
        owner_bytes=settings.NODEAPI_TRACE_OWNER_BYTES,
        tasks_per_key=settings.NODEAPI_CALL_CONCURRENCY,
    )
    spooled = limits.spool_count()
    unknown_keys = UnknownKeys(settings.NODEAPI_FAILED_KEYS_PER_MINUTE)
    # A separate layer, because the subscriber closes all its connections after a failure.
    subscriber = Subscriber(connections, channel_layers.make_backend("default"))
    directory = Directory(
        connections, subscriber, default_slug=settings.DEFAULT_NETWORK
    )
    store = Store(
        connections,
        directory,
        cache_bytes=settings.NODEAPI_CACHE_BYTES,
        spooled=spooled,
        log_connections=log_connections,
        max_logs=settings.NODEAPI_MAX_LOGS,
    )
    upstreams = UpstreamPool(directory)
    arrivals = Arrivals(connections)
    tracing = TracePool(address, limits, spooled)
    return Node(
        connections=connections,
        log_connections=log_connections,
        subscriber=subscriber,
        directory=directory,
        grants=Grants(connections, subscriber, unknown_keys),
        store=store,
        tracing=tracing,
        upstreams=upstreams,
        relay=Relay(
            upstreams,
            store,
            LocalPool(connections, address),
            ReceiptWaits(directory, store),
            tracing,
        ),
        pending_feed=PendingFeed(upstreams, directory, arrivals),
        unknown_keys=unknown_keys,
        uses_after_revocation=UsesAfterRevocation(),
        filters=Filters(
            FilterStorage(settings.REDIS_URL),
            store,
            PendingFilters(upstreams, arrivals),
            spooled,
        ),
        limiter=Limiter(Buckets(settings.REDIS_URL)),
        meter=Meter(address),
        feeds=Feeds(connections, store, directory),
        syncing=SyncingFeed(store, directory),
        values=ValueReader(store, directory, upstreams, address),
    )


_IN_INDEX_ORDER = "-c enable_bitmapscan=off -c enable_sort=off -c enable_material=off"


def _log_options(conninfo: str) -> str:
    """Return libpq's `options` for searches in the log index.

    An index is read in its order and only up to a limit. A plan that reads all rows and
    sorts them would be faster for few rows only.
    """
    given = conninfo_to_dict(conninfo).get("options") or ""
    return f"{given} {_IN_INDEX_ORDER}".strip()


def database_conninfo() -> str:
    """Return the address of Django's database in libpq's form."""
    database: dict[str, Any] = settings.DATABASES["default"]
    given = {
        "dbname": database["NAME"],
        "user": database.get("USER"),
        "password": database.get("PASSWORD"),
        "host": database.get("HOST"),
        "port": database.get("PORT"),
        "application_name": "portcullis",
    }
    options: dict[str, Any] = {
        name: value
        for name, value in database.get("OPTIONS", {}).items()
        if isinstance(value, str | int)
    }
    return make_conninfo(**{k: v for k, v in given.items() if v}, **options)
