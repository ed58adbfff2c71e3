"""The address of Redis: one server, or a master that Sentinels name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from redis import DriverInfo
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

PLAIN_SCHEMES = ("redis", "rediss", "unix")
"""Schemes of addresses of one server."""

SENTINEL_SCHEMES = {"redis+sentinel": False, "rediss+sentinel": True}
"""Schemes of addresses with Sentinels, and whether their connections use TLS."""

SENTINEL_PORT = 26379
"""Default port of a Sentinel."""

TIMEOUT_SECONDS = 1.0
"""Timeout of the channel layer's connections, for connecting and for each answer."""

_DRIVER = DriverInfo()
"""Otherwise each connection would read the version of redis-py from its package, for 3 ms."""

_CHECKED = "portcullis:health"
"""A key that exists only to check that Redis accepts writes."""


class _BlockingSentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the master; at the maximum number, callers wait for one."""

    async def disconnect(self, inuse_connections: bool = True) -> None:
        """Close the connections. With those in use, also those to the Sentinels."""
        await super().disconnect(inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                await sentinel.aclose()


@dataclass(frozen=True, slots=True)
class SentinelAddress:
    """A master's name, and the Sentinels that know its address.

    options: arguments of connections to the master.
    sentinel_options: arguments of connections to the Sentinels.
    """

    sentinels: tuple[tuple[str, int], ...]
    master: str
    options: dict[str, Any] = field(repr=False)
    sentinel_options: dict[str, Any] = field(repr=False)


def parse_sentinel_url(url: str) -> SentinelAddress | None:
    """Return the parts of an address with Sentinels; None for one of another form.

    url: redis+sentinel://[user:password@]host[:port][,host[:port]…]/master[/database].
        User and password are those of Redis; the options `sentinel_username` and
        `sentinel_password` are those of the Sentinels. Each part is percent-encoded.
    Raises: ValueError "must …", without the password.
    """
    scheme, _, _ = url.partition("://")
    if scheme not in SENTINEL_SCHEMES:
        return None
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    username, _, password = credentials.partition(":")
    master, _, database = parts.path.removeprefix("/").partition("/")
    if not master or not (database or "0").isdecimal():
        raise ValueError(
            f"must end with the name of a master and the number of a database, such as"
            f" {scheme}://host/mymaster/0"
        )
    options: dict[str, Any] = {"db": int(database or "0")}
    if SENTINEL_SCHEMES[scheme]:
        options["ssl"] = True
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    unknown = given.keys() - {"sentinel_username", "sentinel_password"}
    if unknown:
        raise ValueError(
            "must have only the options sentinel_username and sentinel_password, not"
            f" {min(unknown)!r}"
        )
    login = {"username": unquote(username), "password": unquote(password)}
    sentinel_login = {
        "username": given.get("sentinel_username"),
        "password": given.get("sentinel_password"),
    }
    return SentinelAddress(
        sentinels=tuple(_place(host) for host in hosts.split(",")),
        master=unquote(master),
        options=options | {name: value for name, value in login.items() if value},
        sentinel_options={k: v for k, v in sentinel_login.items() if v}
        | ({"ssl": True} if SENTINEL_SCHEMES[scheme] else {}),
    )


def connection_pool(
    url: str, *, max_connections: int, timeout: float
) -> BlockingConnectionPool:
    """Return a pool whose operations fail after a timeout in seconds, without a retry.

    Raises: ValueError "must …", without the password, if the URL is invalid.
    """
    options: dict[str, Any] = {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "retry": Retry(NoBackoff(), 0),
        "driver_info": _DRIVER,
    }
    limits = {"max_connections": max_connections, "timeout": timeout}
    address = parse_sentinel_url(url)
    if address is None:
        _check_plain(url)
        return BlockingConnectionPool.from_url(url, **limits, **options)
    return _BlockingSentinelPool(  # type: ignore[no-untyped-call]  # redis-py's
        address.master,
        Sentinel(  # type: ignore[no-untyped-call]
            address.sentinels, sentinel_kwargs={**options, **address.sentinel_options}
        ),
        **limits,
        **options,
        **address.options,
    )


async def check_writes(redis: Redis) -> None:
    """Check that Redis answers and accepts writes.

    Redis answers a ping though it refuses writes: its memory or its disk is full, or it is
    a replica.

    Raises: RedisError, OSError.
    """
    await redis.set(_CHECKED, 1, ex=60)


def channel_layer_host(url: str) -> dict[str, Any]:
    """Return an entry of `hosts` in the configuration of a channel layer.

    An operation is repeated once, because a connection that was idle may be lost.
    Raises: ValueError as `connection_pool`.
    Source: https://github.com/django/channels_redis#hosts
    """
    options: dict[str, Any] = {
        "socket_timeout": TIMEOUT_SECONDS,
        "socket_connect_timeout": TIMEOUT_SECONDS,
        "retry": Retry(NoBackoff(), 1),
        "driver_info": _DRIVER,
    }
    address = parse_sentinel_url(url)
    if address is None:
        _check_plain(url)
        return {"address": url, **options}
    return {
        "sentinels": list(address.sentinels),
        "master_name": address.master,
        "sentinel_kwargs": {**options, **address.sentinel_options},
        **options,
        **address.options,
    }


def _check_plain(url: str) -> None:
    """Check the URL of one server. Raises: ValueError."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in PLAIN_SCHEMES:
        schemes = [*PLAIN_SCHEMES, *SENTINEL_SCHEMES]
        known = ", ".join(f"{each}://" for each in schemes)
        raise ValueError(f"must begin with one of {known}")
    try:
        pool = ConnectionPool.from_url(url, driver_info=_DRIVER)
        pool.connection_class(**pool.connection_kwargs)
    except (RedisError, TypeError, ValueError):
        # The reason is not shown: it may contain a password that is not encoded.
        raise ValueError(
            "must be a URL such as redis://:password@host:6379/0, with a percent-encoded"
            " password, and only options of redis-py"
        ) from None
    path = urlsplit(url).path.removeprefix("/")
    if scheme == "unix" and not path:
        raise ValueError("must name a socket, such as unix:///run/redis.sock")
    if scheme != "unix" and not (path or "0").isdecimal():
        raise ValueError(
            "must end with the number of a database, such as redis://host/0"
        )


def _place(host: str) -> tuple[str, int]:
    """Split host and port; an IPv6 address is in brackets. Raises: ValueError."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, str(SENTINEL_PORT)
    name = name.removeprefix("[").removesuffix("]")
    if not name or not port.isdecimal():
        raise ValueError("must name Sentinels as host:port,host:port")
    return name, int(port)
