"""Origins of web pages, in the form in which browsers serialise them.

Source:
    https://html.spec.whatwg.org/multipage/browsers.html#ascii-serialisation-of-an-origin
"""

from __future__ import annotations

import re
from functools import cache

from publicsuffixlist import PublicSuffixList

_ORIGIN = re.compile(
    r"(https?)://"
    r"((?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*"
    r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?|\[[0-9a-f:.]{2,45}\])"
    r"(?::([1-9][0-9]{0,4}))?"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_MAX_LENGTH = 300


def parse_origin(text: str) -> str:
    """Return a web page's origin unchanged if it is valid, as `https://dapp.example`.

    A port is allowed: `http://localhost:3000`. Names in other scripts must be in their
    ASCII form (IDNA), as browsers send them.
    Raises: ValueError for text that no browser sends as an origin, and for `null`.
    """
    found = _ORIGIN.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None or int(found[3] or 1) > 65_535:
        raise ValueError("not the origin of a web page")
    if found[3] == _DEFAULT_PORTS[found[1]]:
        raise ValueError("not an origin: it names the default port")
    return text


def registrable_domain(host: str) -> str:
    """Return the part of a host name that its owner has registered.

    `example.co.uk` for `app.example.co.uk`; `me.github.io` for itself, because its
    owner controls all names below it. The whole host if it is an IP address or a public
    suffix.
    Source: https://publicsuffix.org
    """
    is_address = host.startswith("[") or host.rpartition(".")[2].isdigit()
    return host if is_address else _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    """Return the list that is part of the package; nothing is downloaded."""
    return PublicSuffixList()
