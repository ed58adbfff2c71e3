"""`connect.js`: the script of a web page, put together from its parts.

A page includes one classic script, which has to be complete when the next script of the
page runs. So it can't consist of modules, which browsers load later. The parts are files
of `static/wallet/connect/`, one for each concept, and share the scope of one function.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import etag, require_safe

FOLDER = settings.BASE_DIR / "static" / "wallet" / "connect"

PARTS = (
    "errors",
    "store",
    "windows",
    "pairing",
    "socket",
    "sessions",
    "subscriptions",
    "requests",
    "multichain",
    "transport",
    "chains",
    "permissions",
    "methods",
    "provider",
    "bridge",
    "announcing",
    "start",
)
"""The parts in the order in which they run; `start` uses all others."""

CACHED_SECONDS = 60
"""Time for which a browser uses the script without asking; as for other static files."""

_HEAD = """\
// Connects a web page with a Portcullis wallet; see docs/connect.md. This file is put together
// from the files of static/wallet/connect/.
"""


@cache
def script() -> str:
    """Return the source text of `connect.js`."""
    parts = [(FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in PARTS]
    return "\n".join([_HEAD + '(() => {\n"use strict";\n', *parts]) + "})();\n"


@cache
def _tag() -> str:
    return f'"{sha256(script().encode()).hexdigest()[:32]}"'


@require_safe
@cache_control(public=True, max_age=CACHED_SECONDS)
@etag(lambda request: _tag())
def connect_script(request: HttpRequest) -> HttpResponse:
    """Return the script; pages of any origin may read it."""
    response = HttpResponse(script(), "text/javascript; charset=utf-8")
    response["Access-Control-Allow-Origin"] = "*"
    return response
