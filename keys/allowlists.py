"""What an API key may be used from and for, where its owner has said so.

There are five kinds of lists. The entries of one kind are alternatives; a request has to
satisfy each kind that has entries. An empty list allows everything.

Origins and user agents are what a client says of itself: lists of them keep a key that
stands in a page from being used by other pages, and nobody else out.

Source: https://docs.metamask.io/services/how-to/use-api-key/ for kinds and meanings
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from keys.errors import (
    AddressNotAllowed,
    ContractNotAllowed,
    MethodNotAllowlisted,
    OriginNotAllowed,
    UserAgentNotAllowed,
)

ORIGIN = "origin"
USER_AGENT = "user_agent"
IP = "ip"
METHOD = "method"
CONTRACT = "contract"
KINDS = (ORIGIN, USER_AGENT, IP, METHOD, CONTRACT)

MAX_ENTRIES = 30
"""Of each kind; Infura's limit."""

MAX_LENGTH = 200
"""Of an entry, in characters."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_ORIGIN = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?"
    rf"(?P<wildcard>\*\.)?(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}|\*))?"
)
_METHOD = re.compile(r"[A-Za-z0-9]+[_.][A-Za-z0-9_]+")
_CONTRACT = re.compile(r"0x[0-9a-f]{40}")
_DEFAULT_PORTS = {"http": "80", "https": "443"}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Origin:
    """An origin, or a pattern of origins.

    scheme: "" for any. host: of a pattern's parent, if it is for subdomains alone.
    port: "" for the scheme's own, "*" for any.
    """

    scheme: str
    host: str
    port: str
    is_for_subdomains: bool = False

    def matches(self, origin: Origin) -> bool:
        """Return whether a request's origin is one of these."""
        if self.scheme not in ("", origin.scheme):
            return False
        if self.port not in ("*", origin.port):
            return False
        if self.is_for_subdomains:
            return origin.host.endswith("." + self.host)
        return origin.host == self.host

    def __str__(self) -> str:
        scheme = f"{self.scheme}://" if self.scheme else ""
        port = f":{self.port}" if self.port else ""
        return f"{scheme}{'*.' * self.is_for_subdomains}{self.host}{port}"


def parse_origin(text: str) -> Origin:
    """Return the origin that a text names.

    Raises: ValueError.
    """
    match = _ORIGIN.fullmatch(text.strip().removesuffix("/").lower())
    if match is None:
        raise ValueError(
            f"{text!r} is no origin: https://dapp.example, *.dapp.example, localhost:*"
        )
    scheme, port = match["scheme"] or "", match["port"] or ""
    if port == _DEFAULT_PORTS.get(scheme):
        port = ""
    return Origin(scheme, match["host"], port, match["wildcard"] is not None)


def normalise(kind: str, value: str) -> str:
    """Return an entry as it is kept.

    Raises: ValueError, saying what is wrong with it.
    """
    value = value.strip()
    if not (0 < len(value) <= MAX_LENGTH and value.isprintable()):
        raise ValueError(f"an entry has 1 to {MAX_LENGTH} characters, all printable")
    if kind == ORIGIN:
        return str(parse_origin(value))
    if kind == IP:
        return str(_network(value))
    if kind == METHOD and not _METHOD.fullmatch(value):
        raise ValueError(f"{value!r} is no method: eth_getStorageAt")
    if kind == CONTRACT:
        value = value.lower()
        if not _CONTRACT.fullmatch(value):
            raise ValueError(f"{value!r} is no address: 0x and 40 hexadecimal digits")
    return value


@dataclass(frozen=True, slots=True)
class Allowlists:
    """All lists of one key, each empty or to be satisfied.

    user_agents: parts, in lower case, one of which the header has to contain.
    contracts: addresses, of 20 bytes.
    """

    origins: tuple[Origin, ...] = ()
    user_agents: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    methods: frozenset[str] = frozenset()
    contracts: frozenset[bytes] = frozenset()

    def require_client(
        self, ip: str | None, origin: bytes | None, user_agent: bytes | None
    ) -> None:
        """Check what is known of a request before its body is read.

        origin, user_agent: the headers of these names.
        Raises: AddressNotAllowed, OriginNotAllowed, UserAgentNotAllowed.
        """
        if self.networks and not _is_within(ip, self.networks):
            raise AddressNotAllowed
        if self.origins and not self._allows_origin(origin):
            raise OriginNotAllowed
        if self.user_agents:
            agent = (user_agent or b"").decode("latin-1").lower()
            if not any(part in agent for part in self.user_agents):
                raise UserAgentNotAllowed

    def require_method(self, name: str) -> None:
        """Raise MethodNotAllowlisted for a method that is not to be called."""
        if self.methods and name not in self.methods:
            raise MethodNotAllowlisted(name)

    def require_contracts(self, addresses: Iterable[bytes]) -> None:
        """Raise ContractNotAllowed unless a call may name all these addresses."""
        if not self.contracts:
            return
        for address in addresses:
            if address not in self.contracts:
                raise ContractNotAllowed("0x" + address.hex())

    def _allows_origin(self, header: bytes | None) -> bool:
        try:
            origin = parse_origin((header or b"").decode("latin-1"))
        except ValueError:
            return False
        return any(pattern.matches(origin) for pattern in self.origins)


def make_allowlists(entries: Iterable[tuple[str, str]]) -> Allowlists:
    """Return the lists that entries, by kind and as `normalise` makes them, come to."""
    values: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, value in entries:
        values[kind].append(value)
    return Allowlists(
        origins=tuple(map(parse_origin, values[ORIGIN])),
        user_agents=tuple(value.lower() for value in values[USER_AGENT]),
        networks=tuple(map(_network, values[IP])),
        methods=frozenset(values[METHOD]),
        contracts=frozenset(bytes.fromhex(value[2:]) for value in values[CONTRACT]),
    )


def _network(value: str) -> Network:
    try:
        return ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError(
            f"{value!r} is no address or network: 192.0.2.7, 2001:db8::/32"
        ) from None


@lru_cache(maxsize=1024)
def _is_within(ip: str | None, networks: tuple[Network, ...]) -> bool:
    """Return whether an address is in one of the networks; none is in none."""
    try:
        address = ipaddress.ip_address(ip or "")
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)
