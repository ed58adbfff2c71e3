"""Whom an address of the internet stands for, where something is counted of each."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_NETWORK_BITS = 64
"""Of an IPv6 address: whoever has one has the whole network's.
Source: https://www.rfc-editor.org/rfc/rfc4291#section-2.5.1"""


def read_address(text: str | None) -> IPv4Address | IPv6Address | None:
    """Return the address that a text is, None for what is none, as of a unix socket.

    An IPv4 address that is written as an IPv6 one is an IPv4 address.
    """
    try:
        found = ip_address(text or "")
    except ValueError:
        return None
    return (found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found


def place_of(address: str | None) -> str | None:
    """Return what is counted of an address: of IPv6 the /64, by its first address.

    None for what is no address.
    """
    found = read_address(address)
    if isinstance(found, IPv6Address):
        network = IPv6Network((int(found), _NETWORK_BITS), strict=False)
        return str(network.network_address)
    return None if found is None else str(found)
