"""The home page, and the part of it that follows the heads."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from guide import showcase
from guide.computed import Computed
from guide.showcase import HEAD_SECONDS, Head
from keys.dashboard.snippets import PLACEHOLDER, snippets
from keys.policy import with_own_calls
from keys.site import base_url, network_url
from nodeapi.methods import registry

SHOWN_CLIENTS = ("curl", "web3py", "viem")
"""Names of the examples on the home page and in the quickstart."""


class Response(NamedTuple):
    """The output of an example. name: that of the example."""

    name: str
    text: str


@with_own_calls
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what the service is, its networks, and a call with its response.

    The script of the page requests `?part=heads` every few seconds.
    """
    if request.GET.get("part") == "heads":
        return _parts_that_change(request)
    heads = showcase.heads.get()
    called = _called(heads)
    context = {
        **_live(heads),
        "plans": showcase.plans.get(),
        "trace": showcase.trace.get(),
        "explorer_is_public": any(head.network.public_explorer for head in heads),
        "price": _price(),
        "is_demo": settings.DEMO,
        "key": settings.HOME_API_KEY,
        "examples": [],
    }
    if called is not None:
        url = network_url(base_url(request), called.network)
        key = settings.HOME_API_KEY or PLACEHOLDER
        examples = snippets(url, key)
        shown = [one for one in examples if one.name in SHOWN_CLIENTS]
        context["examples"] = list(zip(shown, context["responses"], strict=True))
    return render(request, "home.html", context)


@cache_control(no_cache=True)
def _parts_that_change(request: HttpRequest) -> HttpResponse:
    """Return the parts of the home page that change with the heads.

    The answer is the same for
    everyone, and needs neither a session nor a query of its own.
    """
    version, text = parts.get()
    etag = quote_etag(version)
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is not None:
        return unchanged
    return HttpResponse(text, headers={"ETag": etag})


def _live(heads: list[Head]) -> dict[str, Any]:
    """Return the context of the parts that change with the heads."""
    called = _called(heads)
    return {
        "heads": heads,
        "called": called,
        "responses": [] if called is None else _responses(called),
        "now": int(time.time()),
        "version": _version(heads),
        "seconds": HEAD_SECONDS,
    }


def _called(heads: list[Head]) -> Head | None:
    """Return the network of the examples: the first one with blocks."""
    return next((head for head in heads if head.number is not None), None)


def _responses(called: Head) -> list[Response]:
    """Return the output of the examples, in the order of SHOWN_CLIENTS."""
    result = f'{{"jsonrpc":"2.0","id":1,"result":"{called.result}"}}'
    return [
        Response("curl", result),
        Response("web3py", f"{called.number}"),
        Response("viem", f"{called.number}n"),
    ]


def _version(heads: list[Head]) -> str:
    """Return a text that changes with the heads."""
    return "-".join(
        f"{head.network.pk}.{head.number}.{head.timestamp}" for head in heads
    )


def _render_parts() -> tuple[str, str]:
    context = _live(showcase.heads.get())
    return context["version"], render_to_string("home/live.html", context)


def _price() -> int:
    """Return the credits of the call in the examples."""
    method = registry.find("eth_blockNumber")
    assert method is not None
    return method.credits


parts = Computed(_render_parts, HEAD_SECONDS)
