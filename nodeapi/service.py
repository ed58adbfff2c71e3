"""What a serving process is made of, and how it is opened and closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from psycopg.conninfo import make_conninfo

from jsonrpc.dispatch import Limits
from keys.grants import Grants
from keys.late_use import LateUses
from keys.limiter.buckets import Buckets
from keys.limiter.limiter import Limiter
from keys.metering import Meter
from keys.strangers import Strangers
from networks.conf import default_network
from networks.directory import Directory
from nodeapi import conf
from nodeapi.endpoint import Endpoint
from nodeapi.methods import registry
from nodeapi.ports import Tracing
from nodeapi.store import Store
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.spool import SpoolCount
from postgres.connections import Connections
from postgres.listener import Listener


@dataclass(frozen=True, slots=True)
class Service:
    """The parts that answer requests, without the HTTP edge."""

    connections: Connections
    listener: Listener
    directory: Directory
    grants: Grants
    store: Store
    tracing: Tracing
    strangers: Strangers
    late_uses: LateUses
    limiter: Limiter
    meter: Meter

    async def start(self) -> None:
        """Listen and read the networks; works as well while the database is down."""
        await self.listener.start()
        await self.directory.start()
        await self.limiter.start()
        await self.meter.start()

    async def stop(self) -> None:
        """Hang up."""
        await self.listener.stop()
        await self.directory.stop()
        await self.tracing.close()
        await self.late_uses.close()
        await self.limiter.stop()
        await self.meter.stop()
        await self.connections.close()


def build_endpoint(service: Service | None = None) -> Endpoint:
    """Return the ASGI application for `/v3`, with the project's database behind it.

    service: what answers, where others share it; made here when None.
    """
    limits = Limits(
        batch_calls=conf.max_batch_calls(),
        response_bytes=conf.max_batch_response_bytes(),
        seconds=conf.request_timeout(),
        slow_seconds=conf.slow_request_timeout(),
    )
    return Endpoint(
        build_service() if service is None else service,
        registry,
        limits=limits,
        max_body_bytes=conf.max_body_bytes(),
    )


def build_service(conninfo: str | None = None) -> Service:
    """Put the parts together; nothing is connected before the start.

    conninfo: libpq's form of the database's address; None: the project's database.
    """
    address = database_conninfo() if conninfo is None else conninfo
    connections = Connections(
        address,
        size=conf.database_connections(),
        query_timeout=conf.query_timeout(),
    )
    limits = conf.trace_limits()
    spooled = SpoolCount(limits.spool_bytes)
    listener = Listener(address)
    directory = Directory(connections, listener, default_slug=default_network())
    return Service(
        connections=connections,
        listener=listener,
        directory=directory,
        grants=Grants(connections, listener),
        store=Store(
            connections, directory, cache_bytes=conf.cache_bytes(), spooled=spooled
        ),
        tracing=TracePool(address, limits, spooled),
        strangers=Strangers(conf.failed_keys_per_minute()),
        late_uses=LateUses(),
        limiter=Limiter(Buckets(settings.REDIS_URL)),
        meter=Meter(address),
    )


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
