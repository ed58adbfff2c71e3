"""Parsers of settings that are addresses: hosts, ports, URLs and email addresses.

Each returns the value in the form that the setting's readers expect. For other text it
raises ValueError with a message "must be …", which contains no secret.
"""

from __future__ import annotations

import re
from email.errors import MessageError
from email.headerregistry import Address
from email.utils import parseaddr
from ipaddress import IPv4Address, ip_address, ip_network

from config.env import integer, words
from config.mail import mail_settings
from keys.format import is_well_formed
from outbox.redis_address import channel_layer_host

_LAST_PORT = 65_535

_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")

_ORIGIN = re.compile(r"https?://[^/\s?#@,]+")

_ALLOWED_HOST = re.compile(
    r"\*|\.?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[\da-f:]+\]"
)

_SLUG = re.compile(r"[a-zA-Z0-9_-]+")


def port(value: str) -> int:
    """Parse a TCP port; 0 stands for none, or for one that the kernel chooses."""
    number = integer(value)
    if not 0 <= number <= _LAST_PORT:
        raise ValueError(f"must be a port from 0 to {_LAST_PORT}, not {number}")
    return number


def host(value: str) -> str:
    """Return an IPv4 address or a host name unchanged."""
    if not _HOST_NAME.fullmatch(value):
        raise ValueError(f"must be an IPv4 address or a host name, not {value!r}")
    return value


def ipv4(value: str) -> str:
    """Return an IPv4 address unchanged."""
    try:
        IPv4Address(value)
    except ValueError:
        raise ValueError(f"must be an IPv4 address, not {value!r}") from None
    return value


def allowed_hosts(value: str) -> list[str]:
    """Return the host names of Django's ALLOWED_HOSTS, which have no port."""
    found = words(value)
    for name in found:
        if not _ALLOWED_HOST.fullmatch(name):
            raise ValueError(
                f"must be host names without scheme and port, not {name!r}"
            )
    return found


def origins(value: str) -> list[str]:
    """Return origins, such as `https://node.example.org`."""
    found = words(value)
    for origin in found:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"must be origins such as https://node.example.org, not {origin!r}"
            )
    return found


def base_url(value: str) -> str:
    """Return the URL of a host without a final slash."""
    if not _ORIGIN.fullmatch(value.rstrip("/")):
        raise ValueError(
            f"must be a URL with a host only, such as https://rpc.example.org,"
            f" not {value!r}"
        )
    return value.rstrip("/")


def proxies(value: str) -> str:
    """Return a list of IP addresses and networks unchanged; `*` stands for all."""
    for one in words(value):
        try:
            ip_network(one) if "/" in one else one == "*" or ip_address(one)
        except ValueError:
            raise ValueError(
                f"must be IP addresses, networks such as 10.0.0.0/8, or *, not {one!r}"
            ) from None
    return value


def redis_address(value: str) -> str:
    """Return the URL of a Redis unchanged; see `outbox.redis_address`."""
    channel_layer_host(value)
    return value


def mail_address(value: str) -> str:
    """Return the URL of a mail server unchanged; see `config.mail`."""
    mail_settings(value)
    return value


def sender(value: str) -> str:
    """Return an email address, which may have a name: `Node API <support@example.org>`."""
    name, address = parseaddr(value)
    try:
        found = Address(name, addr_spec=address)
    except (ValueError, IndexError, MessageError):
        found = Address()
    if not found.username or not found.domain:
        raise ValueError(f"must be an email address, not {value!r}")
    return value


def api_key(value: str) -> str:
    """Return a complete API key unchanged."""
    if not is_well_formed(value):
        raise ValueError("must be a complete API key, nk_ and 36 characters")
    return value


def slug(value: str) -> str:
    """Return the slug of a network unchanged."""
    if not _SLUG.fullmatch(value):
        raise ValueError(f"must be a network's slug, not {value!r}")
    return value
