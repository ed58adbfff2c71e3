"""The pages of the documentation, and the OpenRPC document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from guide.error_entries import EXECUTION_ERRORS, ErrorSection, error_entries
from guide.examples import examples
from guide.facts import bounds, operations, releases
from guide.home import SHOWN_CLIENTS
from jsonrpc.text import dump
from keys.api.problems import PROBLEMS
from keys.dashboard.snippets import PLACEHOLDER, snippets
from keys.models import Plan, Scope
from keys.policy import with_own_calls, with_own_scripts, without_scripts
from keys.services import MAX_LIVE_VERSIONS, OVERLAP_WORDS
from keys.site import base_url, network_url
from networks.models import Network
from nodeapi.methods import registry
from nodeapi.schemas import openrpc as document


class Page(NamedTuple):
    """A page: its URL name in `docs`, and its title."""

    name: str
    title: str


PAGES = [
    Page("index", "Quickstart"),
    Page("authentication", "Authentication"),
    Page("networks", "Networks and methods"),
    Page("console", "Console"),
    Page("limits", "Limits and credits"),
    Page("errors", "Errors"),
    Page("rotation", "Roll a key"),
    Page("wallet", "Wallet API"),
    Page("management", "Management API"),
    Page("changelog", "Changelog"),
]


class Place(NamedTuple):
    """A page with its neighbours, for navigation."""

    page: Page
    before: Page | None
    after: Page | None


def place_of(name: str) -> Place:
    """Return a page with its neighbours. Raises: ValueError for an unknown name."""
    number = [page.name for page in PAGES].index(name)
    before = PAGES[number - 1] if number else None
    after = PAGES[number + 1] if number + 1 < len(PAGES) else None
    return Place(PAGES[number], before, after)


def show_page(request: HttpRequest, name: str, **facts: Any) -> HttpResponse:
    """Render the page `templates/docs/<name>.html` with its navigation."""
    context = {
        "pages": PAGES,
        "place": place_of(name),
        "base_url": base_url(request),
        **facts,
    }
    return render(request, f"docs/{name}.html", context)


@with_own_scripts
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show how to make a first call."""
    base = base_url(request)
    calls = snippets(f"{base}/v3", PLACEHOLDER)
    shown = [call for call in calls if call.name in SHOWN_CLIENTS]
    scheme, _, _ = base.partition(":")
    return show_page(
        request, "index", networks=_served(), scheme=scheme, examples=shown
    )


@without_scripts
@require_safe
def authentication(request: HttpRequest) -> HttpResponse:
    """Show how a request is authenticated."""
    return show_page(request, "authentication")


@with_own_scripts
@require_safe
def networks(request: HttpRequest) -> HttpResponse:
    """Show the networks with their methods and tracers."""
    methods = sorted(registry, key=lambda method: _place(method.name))
    return show_page(request, "networks", networks=_served(), methods=methods)


@with_own_calls
@require_safe
def console(request: HttpRequest) -> HttpResponse:
    """Show the console. The query `?network=slug&method=name` selects a method."""
    return show_page(request, "console")


@with_own_scripts
@require_safe
def limits(request: HttpRequest) -> HttpResponse:
    """Show the price of calls and the limits of plans."""
    return show_page(
        request,
        "limits",
        plans=Plan.objects.all(),
        methods=sorted(registry, key=lambda method: (-method.credits, method.name)),
        bounds=bounds(),
    )


@with_own_scripts
@require_safe
def errors(request: HttpRequest, others: Sequence[ErrorSection] = ()) -> HttpResponse:
    """Show all errors of the API. The member `data.see` of an error links here.

    others: errors of packages above this one; `config.urls` names them.
    """
    entries = error_entries()
    return show_page(
        request,
        "errors",
        entries=[entry for entry in entries if entry.reason],
        geth_entries=[entry for entry in entries if not entry.reason],
        execution_errors=EXECUTION_ERRORS,
        sections=[section() for section in others],
    )


@without_scripts
@require_safe
def rotation(request: HttpRequest) -> HttpResponse:
    """Show how a key's secret is replaced."""
    return show_page(
        request, "rotation", overlaps=OVERLAP_WORDS, most=MAX_LIVE_VERSIONS
    )


@without_scripts
@require_safe
def management(request: HttpRequest) -> HttpResponse:
    """Show the management API."""
    return show_page(
        request,
        "management",
        operations=operations(),
        scopes=list(Scope),
        problems=PROBLEMS,
    )


@without_scripts
@require_safe
def changelog(request: HttpRequest) -> HttpResponse:
    """Show the changelog."""
    return show_page(request, "changelog", releases=releases())


def _place(method: str) -> tuple[bool, str]:
    """Return a sort key by which `eth_` methods are first. The console has the same."""
    return not method.startswith("eth_"), method


def _served() -> list[Network]:
    """Return the networks that customers see, with their host names."""
    return list(Network.objects.visible().prefetch_related("host_names"))


@require_safe
def openrpc(request: HttpRequest) -> HttpResponse:
    """Return the OpenRPC document of `rpc.discover` with all visible networks; it is public."""
    base = base_url(request)
    servers = [
        document.Server(
            name=network.slug,
            summary=network.name,
            url=network_url(base, network),
            tracers=network.tracers,
            examples=examples(network),
        )
        for network in Network.objects.visible()
    ]
    text = dump(document.document(registry, servers))
    response = HttpResponse(text, "application/json")
    response["Access-Control-Allow-Origin"] = "*"
    return response
