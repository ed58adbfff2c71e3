"""Who a web page is: its origin, in the one form in which browsers write it.

Source: https://html.spec.whatwg.org/multipage/browsers.html#ascii-serialisation-of-an-origin
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
    """Return an origin: `https://dapp.example`, `http://localhost:3000`.

    Names in other scripts are expected in their ASCII form, as browsers send them.
    Raises: ValueError for what no browser would send, `null` among it.
    """
    found = _ORIGIN.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None or int(found[3] or 1) > 65_535:
        raise ValueError("not the origin of a web page")
    if found[3] == _DEFAULT_PORTS[found[1]]:
        raise ValueError("not an origin: it names the port that goes without saying")
    return text


def registrable_domain(host: str) -> str:
    """Return the end of a host name that somebody has registered, or got for himself.

    `example.co.uk` of `app.example.co.uk`, `me.github.io` of itself: who has that says
    what stands before it. All of a host that is an address, or a suffix.
    Source: https://publicsuffix.org
    """
    is_address = host.startswith("[") or host.rpartition(".")[2].isdigit()
    return host if is_address else _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    """Return the list that comes with the package; nothing is fetched."""
    return PublicSuffixList()
