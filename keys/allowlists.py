"""Allowlists: restrictions of an API key to certain clients, methods and contracts.

There are five kinds of lists. The entries of one kind are alternatives. A request has
to match one entry of each kind that has entries. An empty list allows everything.

Clients choose their own Origin and User-Agent headers. These lists stop other web pages
from using a key that a page contains. They do not stop other programs.
Source: https://docs.metamask.io/services/how-to/use-api-key/ for kinds and meanings
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from keys import corrections
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
"""Maximum number of entries of each kind. Infura has the same limit."""

MAX_LENGTH = 200
"""Maximum number of characters of an entry."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_ORIGIN = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?"
    rf"(?P<wildcard>\*\.)?(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}|\*))?"
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_METHOD = re.compile(r"[A-Za-z0-9]+[_.][A-Za-z0-9_]+")
_CONTRACT = re.compile(r"0x[0-9a-f]{40}")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_SCHEMES_OF_PORTS = {port: scheme for scheme, port in _DEFAULT_PORTS.items()}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Origin:
    """An origin, or a pattern of origins.

    scheme: "" for any scheme.
    host: the host, or the parent domain if the pattern only matches subdomains.
    port: "" for the scheme's default port, "*" for any port.
    """

    scheme: str
    host: str
    port: str
    is_for_subdomains: bool = False

    def matches(self, origin: Origin) -> bool:
        """Return whether this pattern matches a request's origin."""
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
    """Parse an origin or a pattern, and return it as browsers serialise origins.

    Without a scheme, the ports 443 and 80 mean https and http.

    Raises: ValueError if it is malformed, or if no browser sends such an origin.
    Source: https://url.spec.whatwg.org/#host-parsing
    """
    match = _ORIGIN.fullmatch(text.strip().removesuffix("/").lower())
    if match is None:
        raise ValueError(f"{text!r} is not an origin")
    port = match["port"] or ""
    if port not in ("", "*"):
        port = str(int(port))
        if not 0 < int(port) < 65_536:
            raise ValueError(f"{text!r} has a port that does not exist")
    scheme = match["scheme"] or _SCHEMES_OF_PORTS.get(port, "")
    if port == _DEFAULT_PORTS.get(scheme):
        port = ""
    is_for_subdomains = match["wildcard"] is not None
    host = match["host"]
    if scheme in ("", *_DEFAULT_PORTS) or host.startswith("["):
        host, is_address = _parse_host(host)
        if is_address and is_for_subdomains:
            raise ValueError(f"{text!r} is an IP address, which has no subdomains")
    return Origin(scheme, host, port, is_for_subdomains)


def _parse_host(host: str) -> tuple[str, bool]:
    """Return a host as browsers serialise it, and whether it is an IP address.

    Raises: ValueError.
    """
    if host.startswith("["):
        address = ipaddress.IPv6Address(host[1:-1])
        if address.ipv4_mapped is None:
            return f"[{address}]", True
        # Python's form of these addresses differs by version.
        low = int(address.ipv4_mapped)
        return f"[::ffff:{low >> 16:x}:{low & 0xFFFF:x}]", True
    parts = host.split(".")
    if not _NUMBER.fullmatch(parts[-1]):
        return host, False
    *numbers, last = map(_number, parts)
    free = 4 - len(numbers)
    if free < 1 or max(numbers, default=0) > 255 or last >= 256**free:
        raise ValueError(f"{host!r} is not an IPv4 address")
    leading = sum(each << 8 * (3 - place) for place, each in enumerate(numbers))
    return str(ipaddress.IPv4Address(leading + last)), True


def _number(text: str) -> int:
    """Return a number of an IPv4 address in C's notation. Raises: ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def normalise(kind: str, value: str) -> str:
    """Return an entry in the form in which it is stored.

    Raises: ValueError if the entry is malformed, with a message for the user that
        suggests a correction or gives an example.
    """
    value = value.strip()
    if not (0 < len(value) <= MAX_LENGTH and value.isprintable()):
        raise ValueError(
            f"An entry must have 1 to {MAX_LENGTH} characters, all of them printable."
        )
    if kind == USER_AGENT:
        return value
    noun, advice, parse, correct = _FORMS[kind]
    try:
        return parse(value)
    except ValueError:
        suggestion = _first_valid(parse, correct(value))
        hint = f"Did you mean {suggestion}?" if suggestion else advice
        raise ValueError(f"{value!r} is not {noun}. {hint}") from None


def _first_valid(parse: Callable[[str], str], texts: Iterable[str]) -> str:
    """Return the first well-formed text in its stored form, or ""."""
    for text in texts:
        with suppress(ValueError):
            return parse(text[:MAX_LENGTH])
    return ""


def _parse_origin_entry(value: str) -> str:
    origin = parse_origin(value)
    if corrections.is_wrong_scheme(origin.scheme):
        raise ValueError(value)
    return str(origin)


def _parse_method(value: str) -> str:
    if not _METHOD.fullmatch(value):
        raise ValueError(value)
    return value


def _parse_contract(value: str) -> str:
    if not _CONTRACT.fullmatch(value.lower()):
        raise ValueError(value)
    return value.lower()


@dataclass(frozen=True, slots=True)
class Allowlists:
    """All allowlists of one key. An empty list allows everything.

    user_agents: lower-case substrings. The User-Agent header has to contain one.
    contracts: addresses of 20 bytes.
    """

    origins: tuple[Origin, ...] = ()
    user_agents: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    methods: frozenset[str] = frozenset()
    contracts: frozenset[bytes] = frozenset()

    def require_client(
        self, ip: str | None, origin: bytes | None, user_agent: bytes | None
    ) -> None:
        """Check the client's address and headers, before the request's body is read.

        origin, user_agent: values of the headers of these names.

        Raises: AddressNotAllowed, OriginNotAllowed, UserAgentNotAllowed.
        """
        if self.networks and not _is_within(ip, self.networks):
            raise AddressNotAllowed
        if self.origins and not self._allows_origin(origin):
            raise OriginNotAllowed
        if self.user_agents:
            agent = _decode(user_agent or b"").lower()
            if not any(part in agent for part in self.user_agents):
                raise UserAgentNotAllowed

    def require_method(self, name: str) -> None:
        """Raise MethodNotAllowlisted unless the key may call the method."""
        if self.methods and name not in self.methods:
            raise MethodNotAllowlisted(name)

    def require_contracts(self, addresses: Iterable[bytes]) -> None:
        """Raise ContractNotAllowed unless the key may use all these addresses."""
        if not self.contracts:
            return
        for address in addresses:
            if address not in self.contracts:
                raise ContractNotAllowed("0x" + address.hex())

    def require_filter(self, addresses: Iterable[bytes] | None) -> None:
        """Check the addresses of a filter of logs. None: it matches all addresses.

        Raises: ContractNotAllowed.
        """
        if self.contracts and addresses is None:
            raise ContractNotAllowed(None)
        self.require_contracts(addresses or ())

    def _allows_origin(self, header: bytes | None) -> bool:
        try:
            origin = parse_origin((header or b"").decode("latin-1"))
        except ValueError:
            return False
        return any(pattern.matches(origin) for pattern in self.origins)


def make_allowlists(entries: Iterable[tuple[str, str]]) -> Allowlists:
    """Return a key's allowlists from pairs of kind and normalised entry."""
    values: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, value in entries:
        values[kind].append(value)
    return Allowlists(
        origins=tuple(map(_stored_origin, values[ORIGIN])),
        user_agents=tuple(value.lower() for value in values[USER_AGENT]),
        networks=tuple(map(_network, values[IP])),
        methods=frozenset(values[METHOD]),
        contracts=frozenset(bytes.fromhex(value[2:]) for value in values[CONTRACT]),
    )


def _stored_origin(value: str) -> Origin:
    """Return a stored entry. One that is no longer accepted matches no origin."""
    try:
        return parse_origin(value)
    except ValueError:
        return Origin("", value, "")


def _decode(header: bytes) -> str:
    """Return a header's text. Clients send UTF-8 or ISO 8859-1."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def _network(value: str) -> Network:
    """Parse an address or a network. IPv4 addresses in IPv6 notation become IPv4.

    Raises: ValueError.
    """
    network = ipaddress.ip_network(value, strict=False)
    if isinstance(network, ipaddress.IPv4Network):
        return network
    mapped = network.network_address.ipv4_mapped
    if mapped is not None and network.prefixlen >= 96:
        return ipaddress.IPv4Network((mapped, network.prefixlen - 96))
    # Without the zone of a link-local address, which is that of the server.
    return ipaddress.IPv6Network((int(network.network_address), network.prefixlen))


_FORMS: dict[
    str, tuple[str, str, Callable[[str], str], Callable[[str], Iterable[str]]]
] = {
    ORIGIN: (
        "an origin",
        "Enter an origin such as https://dapp.example, *.dapp.example or localhost:*.",
        _parse_origin_entry,
        corrections.origin_corrections,
    ),
    IP: (
        "an IP address or network",
        "Enter an address such as 192.0.2.7, or a network such as 2001:db8::/32.",
        lambda value: str(_network(value)),
        corrections.network_corrections,
    ),
    METHOD: (
        "a method",
        "Enter the name of a method, such as eth_getStorageAt.",
        _parse_method,
        corrections.method_corrections,
    ),
    CONTRACT: (
        "an address",
        "Enter 0x and 40 hexadecimal digits.",
        _parse_contract,
        corrections.contract_corrections,
    ),
}
"""By kind: a noun for an entry, a sentence that says what to enter, a function that
returns the stored form or raises ValueError, and a function that yields corrections."""


@lru_cache(maxsize=1024)
def _is_within(ip: str | None, networks: tuple[Network, ...]) -> bool:
    """Return whether an address is in one of the networks.

    Without an address: False.
    """
    try:
        address = ipaddress.ip_address(ip or "")
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)
