"""The address of PostgreSQL, as the setting DATABASE_URL has it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote

from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo

_SCHEMES = ("postgres", "postgresql")

_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
"""Source: https://www.postgresql.org/docs/current/libpq-ssl.html"""


def parse_database_url(url: str) -> dict[str, Any]:
    """Return the entry of Django's DATABASES for a PostgreSQL URL.

    url: postgresql://user:password@host:port/name?option=value, each part
        percent-encoded; a host that begins with / is a folder of unix sockets.
        Options are libpq's (sslmode, connect_timeout, …) and can include `host` and
        `port`.
    Raises: ValueError "must …", without the password.
    Source: https://www.postgresql.org/docs/current/libpq-connect.html 32.1.1.2
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise ValueError("must begin with postgres:// or postgresql://")
    rest, _, query = rest.partition("?")
    authority, _, name = rest.partition("/")
    credentials, _, location = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    host, port = _split_location(location)
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not name:
        raise ValueError("must name a database, such as postgres://host/name")
    _check_options(options)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(name),
        "USER": unquote(user),
        "PASSWORD": unquote(password),
        "HOST": options.pop("host", unquote(host)),
        "PORT": _checked_port(options.pop("port", port)),
        "OPTIONS": options,
    }


def database_address(value: str) -> str:
    """Return the URL unchanged. Raises: ValueError as `parse_database_url`."""
    parse_database_url(value)
    return value


def _split_location(location: str) -> tuple[str, str]:
    """Split host and port; an IPv6 address is in brackets. Raises: ValueError."""
    if location.startswith("["):
        host, _, port = location[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = location.partition(":")
    if port and not port.isdecimal():
        # Not shown: it is part of a password that is not percent-encoded.
        raise ValueError(
            "must have a number as its port; user and password must be percent-encoded"
        )
    return host, _checked_port(port)


def _checked_port(port: str) -> str:
    """Return a port, which may be empty. Raises: ValueError beyond 1 to 65,535."""
    if port.isdecimal() and not 0 < int(port) < 2**16:
        raise ValueError("must have a port from 1 to 65535")
    return port


def _check_options(options: dict[str, str]) -> None:
    """Check that libpq has all options. Raises: ValueError."""
    for name, value in options.items():
        try:
            make_conninfo(**{name: value})
        except ProgrammingError:
            raise ValueError(f"must have only options of libpq, not {name!r}") from None
    mode = options.get("sslmode", _SSL_MODES[0])
    if mode not in _SSL_MODES:
        modes = ", ".join(_SSL_MODES)
        raise ValueError(f"must have one of {modes} as its sslmode, not {mode!r}")
