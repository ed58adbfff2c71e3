"""Addresses of clients, and which of them belong to one owner."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_NETWORK_BITS = 64
"""Prefix length of IPv6. A client can use every address of its /64 network.
Source: https://www.rfc-editor.org/rfc/rfc4291#section-2.5.1"""


def read_address(text: str | None) -> IPv4Address | IPv6Address | None:
    """Parse an IP address; None for other texts, such as that of a Unix socket.

    An IPv4-mapped IPv6 address is returned as the IPv4 address.
    """
    try:
        found = ip_address(text or "")
    except ValueError:
        return None
    return (found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found


def owner_of(address: str | None) -> str | None:
    """Return the address for which a client is counted in limits.

    It is an IPv4 address itself, or the first address of an IPv6 address's /64 network.
    Returns None if the text is not an address.
    """
    found = read_address(address)
    if isinstance(found, IPv6Address):
        network = IPv6Network((int(found), _NETWORK_BITS), strict=False)
        return str(network.network_address)
    return None if found is None else str(found)
