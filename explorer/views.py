"""The pages of a network, a block, a transaction and an address, and of the search."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.http import require_safe

from abi.batches import selectors_in
from evm.headers import decode_header
from evm.hexadecimal import to_hex
from explorer import rows
from explorer.abis import Abis
from explorer.access import admitted, admitted_networks, login_unless_public
from explorer.access_lists import find_gas, find_list, gas_of, shown_list
from explorer.accounts import Cursor, find_account, parse_cursor, transactions
from explorer.arguments import MAX_LINES, call_text
from explorer.calls import MAX_LOGS
from explorer.erc20 import tokens_of
from explorer.logs import log_line, receipt_logs, topics_of
from explorer.pending import pending_count, pending_transaction
from explorer.recorded import Busy, room, shown_calls, shown_changes
from explorer.responses import private
from explorer.search import MAX_TEXT, Results, search
from explorer.summaries import block_facts, fee_recipient, header_fields
from explorer.transfers import transfers_of
from keys.models import User
from keys.policy import with_own_calls, with_own_scripts
from legible import words
from legible.words import moment
from networks.models import Network, Tracer
from nodeapi.models import Block
from nodeapi.status.block_states import State, Tags, tags_of
from nodeapi.status.reorganisations import (
    newest_reorganisation,
    recent_reorganisations,
)


@with_own_scripts
@private
@require_safe
@login_unless_public
def index(request: HttpRequest) -> HttpResponse:
    """Show the networks whose blocks the user may see, each with its newest one."""
    networks = admitted_networks(request)
    return render(request, "explore/index.html", {"networks": networks})


@with_own_calls
@private
@require_safe
@login_unless_public
def latest(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a network's newest blocks and recent reorganisations.

    `?before=N` shows the blocks below number N. The script of the page requests the
    page again with the version that it has, and gets 304 while nothing has changed.
    """
    network, _ = admitted(request, slug)
    before = _before(request)
    tags = tags_of(network)
    pending = pending_count(request, network) if before is None else None
    version = _version(network, tags, pending)
    etag = quote_etag(version)
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is not None:
        return unchanged
    now = time.time()
    lines = block_lines(network, tags, now, before)
    context = {
        "network": network,
        "tags": tags,
        "pending": pending,
        "lines": lines,
        "newer": None if before is None else before + PAGE_SIZE,
        "older": lines[-1].number if lines and lines[-1].number else None,
        "reorganisations": recent_reorganisations(network, tags)
        if before is None
        else [],
        "is_newest": before is None,
        "now": int(now),
        "version": version,
    }
    response = render(request, "explore/network.html", context)
    response["ETag"] = etag
    return response


@with_own_scripts
@private
@require_safe
@login_unless_public
def block(request: HttpRequest, slug: str, block_hash: bytes) -> HttpResponse:
    """Show a block's header and its transactions, a hundred at a time."""
    network, _ = admitted(request, slug)
    return _block(request, network, rows.find_block(network, block_hash))


@with_own_scripts
@private
@require_safe
@login_unless_public
def block_by_number(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show the canonical block of a height, like `block`."""
    network, _ = admitted(request, slug)
    return _block(request, network, rows.find_canonical_block(network, number))


def _block(request: HttpRequest, network: Network, found: Block | None) -> HttpResponse:
    """Show a block. Raises: Http404 for a page that it does not have."""
    if found is None:
        reason = f"{network.name} has no such block, or does not have it yet."
        return _not_found(request, network, "block", reason)
    last_page = max(1, -(-found.transaction_count // rows.PAGE_SIZE))
    page = _page(request, last_page)
    parent, children = rows.relatives(found)
    head = bytes(found.document[: found.transactions_offset])
    tags = tags_of(network)
    listed, facts = find_list(found), block_facts(head)
    if gas := gas_of(listed):
        facts[1:1] = [("execution gas", gas.execution), ("state gas", gas.state)]
    context = {
        "network": network,
        "found": found,
        "access_list": shown_list(listed, found.transaction_count),
        "state": tags.state(found.number, is_canonical=found.is_canonical),
        "canonical_hash": _canonical_hash(network, found),
        "block_hash": to_hex(found.hash),
        "parent_hash": to_hex(found.parent_hash),
        "moment": moment(found.timestamp),
        "miner": fee_recipient(head),
        "facts": facts,
        "fields": header_fields(head),
        "parent": parent,
        "children": children,
        "transactions": rows.summaries(found, page),
        "page": page,
        "last_page": last_page,
    }
    return render(request, "explore/block.html", context)


@with_own_scripts
@private
@require_safe
@login_unless_public
def transaction(request: HttpRequest, slug: str, name: bytes) -> HttpResponse:
    """Show a transaction, its calls and its state changes, or a pending transaction.

    name: its hash. `?block=0x…` selects one of the blocks that contain it.
    """
    network, tracers = admitted(request, slug)
    wanted = _wanted_block(request)
    try:
        with room():
            page = _transaction(request, network, name, wanted, tracers)
    except Busy:
        return render(
            request, "explore/busy.html", status=HTTPStatus.SERVICE_UNAVAILABLE
        )
    if page is not None:
        return page
    if wanted is not None:
        raise Http404
    # Without the room, because upstreams may take seconds.
    return _pending(request, network, name)


def _transaction(
    request: HttpRequest,
    network: Network,
    name: bytes,
    wanted: bytes | None,
    tracers: frozenset[str],
) -> HttpResponse | None:
    """Return the page of a transaction, None if no block contains it.

    wanted: the hash of one of its blocks, or None.
    """
    found = rows.find_transaction(network, name, wanted)
    if found is None:
        return None
    recorded, is_canonical = found.recorded, found.block.is_canonical
    tags = tags_of(network)
    abis = Abis(network, request.user)
    logs = receipt_logs(found.receipt)
    data = found.input
    transfers = transfers_of(logs or ())
    abis.read(selectors_in(data) | topics_of(logs or ()))
    checkpoint = network.checkpoint_number
    gas = find_gas(found.block)
    is_executed = (
        checkpoint is None
        or found.block.number > checkpoint
        or gas is not None  # only an executed block has an access list
    )
    context = {
        "network": network,
        "found": found.block,
        "state": tags.state(found.block.number, is_canonical=is_canonical),
        "canonical_hash": _canonical_hash(network, found.block),
        "included": None if is_canonical else rows.including_block(network, name),
        "moment": moment(found.block.timestamp),
        "gas": gas_of(gas, recorded.index),
        "transaction": found.summary,
        "call": call_text(data, found.to, abis.of, MAX_LINES) if found.to else None,
        "input": words.hexadecimal(data),
        "input_size": words.count(len(data), "byte"),
        "logs": None
        if logs is None
        else [log_line(log, abis) for log in logs[:MAX_LOGS]],
        "hidden_logs": max(0, len(logs or ()) - MAX_LOGS),
        "transfers": transfers.named(tokens_of(request, network, transfers.contracts)),
        "request_path": _request_path(request, network),
        "calls": shown_calls(recorded, found.calls_size, abis, is_executed=is_executed)
        if Tracer.CALL in tracers
        else None,
        "changes": shown_changes(recorded, is_executed=is_executed)
        if Tracer.PRESTATE in tracers
        else None,
    }
    return render(request, "explore/transaction.html", context)


def _request_path(request: HttpRequest, network: Network) -> str:
    """Return the page on which the visitor can request tracing on a network.

    Returns: the form for their key if they have one, the list of their keys if they have
        several or none, and the login for an anonymous visitor.
    """
    user = request.user
    if not isinstance(user, User):
        return f"{reverse('login')}?next={request.path}"
    keys = list(user.api_keys.filter(deleted_at=None).values_list("pk", flat=True)[:2])
    if len(keys) == 1:
        return reverse("dashboard:ask", args=[keys[0], network.slug])
    return reverse("dashboard:keys")


def _pending(request: HttpRequest, network: Network, name: bytes) -> HttpResponse:
    """Show a pending transaction, or that there is none with this hash."""
    found = pending_transaction(request, network, name)
    if found is None:
        reason = (
            f"No block of {network.name} contains it, and it was not found among the "
            "pending transactions."
        )
        return _not_found(request, network, "transaction", reason)
    context = {"network": network, "transaction": found, "state": State("pending")}
    return render(request, "explore/pending.html", context)


def _not_found(
    request: HttpRequest, network: Network, what: str, reason: str
) -> HttpResponse:
    """Say that a block or transaction was not found. reason: a sentence."""
    context = {"network": network, "what": what, "reason": reason}
    return render(
        request, "explore/not_found.html", context, status=HTTPStatus.NOT_FOUND
    )


def _canonical_hash(network: Network, found: Block) -> str | None:
    """Return the hash of the canonical block at a side block's height, or None."""
    if found.is_canonical:
        return None
    name = rows.canonical_hash(network, found.number)
    return None if name is None else to_hex(name)


def _version(network: Network, tags: Tags, pending: int | None) -> str:
    """Return a text that changes with the content of a network's page."""
    newest = newest_reorganisation(network)
    parts = (network.pk, network.name, network.head_hash, tags, newest, pending)
    return sha256(repr(parts).encode()).hexdigest()[:32]


def _before(request: HttpRequest) -> int | None:
    """Return the block number in the query, None without one. Raises: Http404."""
    text = request.GET.get("before")
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 18 or int(text) == 0:
        raise Http404
    return int(text)


def _wanted_block(request: HttpRequest) -> bytes | None:
    """Return the block hash in the query, None without one. Raises: Http404."""
    text = request.GET.get("block")
    if text is None:
        return None
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise Http404 from None


def _page(request: HttpRequest, last_page: int) -> int:
    """Return the page number in the query, 1 without one. Raises: Http404."""
    text = request.GET.get("page", "1")
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= last_page:
        raise Http404
    return int(text)


@with_own_scripts
@private
@require_safe
@login_unless_public
def address(request: HttpRequest, slug: str, account: bytes) -> HttpResponse:
    """Show an account after the head block, and its newest transactions.

    `?before=NUMBER-INDEX` shows the transactions before that one.
    """
    network, _ = admitted(request, slug)
    before = _cursor(request)
    context = {
        "network": network,
        "account": find_account(network, account),
        "page": transactions(network, account, before),
        "is_newest": before is None,
    }
    return render(request, "explore/address.html", context)


def _cursor(request: HttpRequest) -> Cursor | None:
    """Return the cursor in the query, None without one. Raises: Http404."""
    text = request.GET.get("before")
    if text is None:
        return None
    try:
        return parse_cursor(text)
    except ValueError:
        raise Http404 from None


@with_own_scripts
@private
@require_safe
@login_unless_public
def search_page(request: HttpRequest) -> HttpResponse:
    """Show what `?q=…` finds on the networks that the visitor may see.

    A single result redirects to its page, unless there may be more.
    """
    networks = admitted_networks(request)
    text = request.GET.get("q", "")[:MAX_TEXT].strip()
    results = search(networks, text) if text and networks else Results()
    if results.is_complete and len(results.found) == 1:
        return HttpResponseRedirect(results.found[0].path)
    if results.maybe_pending and len(networks) == 1:
        # The page of the transaction asks the network's upstreams.
        place = networks[0].slug, results.maybe_pending
        return HttpResponseRedirect(reverse("explore:transaction", args=place))
    context = {"text": text, "results": results, "networks": networks}
    return render(request, "explore/search.html", context)


PAGE_SIZE = 25
"""Maximum number of blocks on a page."""

_COLUMNS = ("number", "hash", "transaction_count", "gas_used", "header")


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A block, formatted as text."""

    number: int
    hash: str
    brief: str
    """The beginning and the end of the hash."""
    timestamp: int
    """Unix seconds."""
    moment: str
    age: str
    """Time since the block's timestamp, such as `12 s`."""
    transactions: int
    gas_used: str
    gas_limit: str
    gas_share: str
    """Used part of the gas limit, such as `42.1%`; also the width of its bar."""
    base_fee: str
    """Empty before London."""
    state: State


def block_lines(
    network: Network, tags: Tags, now: float, below: int | None = None
) -> list[BlockLine]:
    """Return a page of canonical blocks, the newest first.

    now: Unix seconds.
    below: only blocks with lower numbers are returned. If None, blocks up to the head are.
    """
    blocks = Block.objects.filter(network=network, is_canonical=True)
    if below is not None:
        blocks = blocks.filter(number__lt=below)
    newest = blocks.only(*_COLUMNS).order_by("-number")[:PAGE_SIZE]
    return [_line(block, tags, now) for block in newest]


def _line(block: Block, tags: Tags, now: float) -> BlockLine:
    header = decode_header(bytes(block.header))
    block_hash = bytes(block.hash).hex()
    share = header.gas_used / header.gas_limit if header.gas_limit else 0
    base_fee = header.base_fee_per_gas
    return BlockLine(
        number=block.number,
        hash=f"0x{block_hash}",
        brief=words.shortened(f"0x{block_hash}"),
        timestamp=header.timestamp,
        moment=words.moment(header.timestamp),
        age=words.age(now - header.timestamp),
        transactions=block.transaction_count,
        gas_used=words.number(header.gas_used),
        gas_limit=words.number(header.gas_limit),
        gas_share=f"{share:.1%}",
        base_fee="" if base_fee is None else words.short_gwei(base_fee),
        state=tags.state(block.number, is_canonical=True),
    )
