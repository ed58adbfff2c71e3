"""Corrections of malformed allowlist entries, to be suggested to the user.

Each function yields texts that the user may have meant, the most likely first. They are
not checked: the caller suggests the first one that is well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from urllib.parse import urlsplit

_ADDRESS_DIGITS = 40

_WEB_SCHEMES = ("https", "http")

_SOCKET_SCHEMES = {"wss": "https", "ws": "http"}
"""The schemes of pages that open WebSockets with these schemes."""


def is_wrong_scheme(scheme: str) -> bool:
    """Return whether a scheme stands for http or https without being one of them.

    It is misspelt, or that of a WebSocket. Other schemes are valid, such as those of
    browser extensions and of desktop programs.
    """
    return scheme not in _WEB_SCHEMES and bool(_similar_scheme(scheme))


def _similar_scheme(scheme: str) -> str:
    if scheme in _SOCKET_SCHEMES:
        return _SOCKET_SCHEMES[scheme]
    return next(iter(get_close_matches(scheme, _WEB_SCHEMES, 1, cutoff=0.75)), "")


def origin_corrections(text: str) -> Iterator[str]:
    """Yield corrections of an origin.

    They have no path and no user, and correct spellings of the scheme and punctuation.
    """
    plain = re.sub(r"\s+", "", text.strip("\"'<>,; ")).replace(",", ".")
    scheme, separator, rest = plain.partition("://")
    if separator and (similar := _similar_scheme(scheme.lower())):
        plain = f"{similar}://{rest}"
    plain = re.sub(r"^(https?)(:/?|;//|//)(?!/)", r"\1://", plain, flags=re.IGNORECASE)
    yield plain
    address = plain if "://" in plain else f"//{plain}"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.netloc.rpartition("@")[2]
    except ValueError:
        return
    if not host:
        return
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    yield f"{scheme}{port}"
    without_port = re.sub(r":[0-9]*$", "", port)
    yield f"{scheme}{without_port}"
    yield f"{scheme}{without_port.removeprefix('*.')}"
    if "*" in host:
        parent = host.rpartition("*")[2].lstrip(".")
        if "." in parent:
            yield f"{scheme}*.{parent}"
    try:
        yield f"{scheme}{port.encode('idna').decode()}"
    except UnicodeError:
        return


def network_corrections(text: str) -> Iterator[str]:
    """Yield corrections of an IP address or network."""
    plain = re.sub(r"\s+", "", text.strip("\"'<>,; "))
    plain = re.sub(r"^[a-z]+://", "", plain, flags=re.IGNORECASE)
    yield plain
    address, slash, length = plain.partition("/")
    yield address
    yield re.sub(r":\d+$", "", address)
    yield address.strip("[]")
    yield re.sub(r"\]:\d+$", "", address).strip("[]")
    if slash and not length.isdecimal():
        yield address
    octets = re.fullmatch(r"((?:\d{1,3}\.){0,2}\d{1,3})((?:\.(?:\*|x|0)?)*)", address)
    if octets is not None:
        known = octets[1].split(".")
        zeros = ["0"] * (4 - len(known))
        if zeros:
            yield f"{'.'.join([*known, *zeros])}/{8 * len(known)}"


def contract_corrections(text: str) -> Iterator[str]:
    """Yield corrections of an address: with 0x, without surrounding text."""
    plain = re.sub(r"\s+", "", text)
    yield plain
    yield f"0x{plain}"
    found = re.findall(
        rf"(?<![0-9a-fA-F])(?:0[xX])?([0-9a-fA-F]{{{_ADDRESS_DIGITS}}})(?![0-9a-fA-F])",
        plain,
    )
    if len(found) == 1:
        yield f"0x{found[0]}"


def method_corrections(text: str) -> Iterator[str]:
    """Yield corrections of a method's name, without regard to the served methods."""
    plain = text.strip("\"'`(),; ")
    yield plain
    yield re.sub(r"[\s.:/-]+", "_", plain, count=1)
