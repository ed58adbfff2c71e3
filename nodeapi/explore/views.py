"""The page of a block and the page of a transaction."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from keys.policy import without_scripts
from networks.models import Network, Tracer
from nodeapi.explore import rows
from nodeapi.explore.access import admitted, admitted_networks
from nodeapi.explore.recorded import Busy, room, shown_calls, shown_changes
from nodeapi.explore.summaries import header_fields
from nodeapi.explore.words import moment

_private = cache_control(private=True, no_store=True)


@without_scripts
@_private
@require_safe
@login_required
def index(request: HttpRequest) -> HttpResponse:
    """Show the networks whose blocks the user may see, each with its newest one."""
    networks = admitted_networks(request)
    return render(request, "explore/index.html", {"networks": networks})


@without_scripts
@_private
@require_safe
@login_required
def block(request: HttpRequest, slug: str, block_hash: bytes) -> HttpResponse:
    """Show a block's header and its transactions, a hundred at a time."""
    network, _ = admitted(request, slug)
    found = rows.find_block(network, block_hash)
    if found is None:
        raise Http404
    last_page = max(1, -(-found.transaction_count // rows.PAGE_SIZE))
    page = _page(request, last_page)
    parent, children = rows.relatives(found)
    head = bytes(found.document[: found.transactions_offset])
    context = {
        "network": network,
        "found": found,
        "block_hash": _hex(found.hash),
        "parent_hash": _hex(found.parent_hash),
        "moment": moment(found.timestamp),
        "fields": header_fields(head),
        "parent": parent,
        "children": children,
        "transactions": rows.summaries(found, page),
        "page": page,
        "last_page": last_page,
    }
    return render(request, "explore/block.html", context)


@without_scripts
@_private
@require_safe
@login_required
def transaction(request: HttpRequest, slug: str, name: bytes) -> HttpResponse:
    """Show a transaction, its calls, and what it changed.

    name: its hash. `?block=0x…` in the address chooses among the blocks that it is in.
    """
    network, tracers = admitted(request, slug)
    try:
        with room():
            return _transaction(request, network, name, tracers)
    except Busy:
        return render(
            request, "explore/busy.html", status=HTTPStatus.SERVICE_UNAVAILABLE
        )


def _transaction(
    request: HttpRequest, network: Network, name: bytes, tracers: frozenset[str]
) -> HttpResponse:
    found = rows.find_transaction(network, name, _wanted_block(request))
    if found is None:
        raise Http404
    recorded = found.recorded
    context = {
        "network": network,
        "found": found.block,
        "moment": moment(found.block.timestamp),
        "transaction": found.summary,
        "calls": shown_calls(recorded, found.calls_size)
        if Tracer.CALL in tracers
        else None,
        "changes": shown_changes(recorded) if Tracer.PRESTATE in tracers else None,
    }
    return render(request, "explore/transaction.html", context)


def _hex(value: bytes | memoryview) -> str:
    """Return a hash as text: drivers give bytes as they like."""
    return f"0x{bytes(value).hex()}"


def _wanted_block(request: HttpRequest) -> bytes | None:
    """Return the hash in the query, None without one. Raises: Http404."""
    text = request.GET.get("block")
    if text is None:
        return None
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise Http404 from None


def _page(request: HttpRequest, last_page: int) -> int:
    """Return the page in the query, the first without one. Raises: Http404."""
    text = request.GET.get("page", "1")
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= last_page:
        raise Http404
    return int(text)
