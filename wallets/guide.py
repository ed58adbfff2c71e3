"""The documentation's page on the wallet, made from the code and the networks."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from jsonrpc.text import dump
from keys.addresses import base_url
from keys.policy import without_scripts
from nodeapi.guide.views import show_page
from wallets import conf
from wallets.methods.chain import KINDS
from wallets.methods.outer import session_methods
from wallets.offers import wallet_offer
from wallets.openrpc import document, error_classes, raised_when
from wallets.services.accounts import MAX_ACCOUNTS
from wallets.services.pairing import PAGE_CODE_LIFETIME, PROGRAM_CODE_LIFETIME
from wallets.services.presence import MAX_SOCKETS
from wallets.sockets import limits, outbox


class Fault(NamedTuple):
    """An error of the wallet's own. when: a sentence."""

    code: int
    text: str
    when: str


class Bound(NamedTuple):
    """Something that is limited. setting: what changes it, "" for nothing."""

    what: str
    value: str
    setting: str = ""


CLOSE_CODES = [
    (outbox.REVOKED, "the token is good no longer: pair again"),
    (outbox.TOO_FAST, "calls went on although they were refused"),
    (outbox.SLOW_READER, "what was asked for was not read"),
    (outbox.NOT_TEXT, "a frame was not text"),
    (outbox.NOTHING_IS_TAKEN, "a frame came where none is read"),
    (outbox.GOING_ON_IS_FUTILE, "a subscription could not be served as promised"),
]
"""With which the wallet closes sockets, and why."""


@without_scripts
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show how dapps reach the wallet, and what they may expect of it."""
    return show_page(
        request,
        "wallet",
        methods=list(session_methods),
        scopes=[
            (name, known.all_methods, known.notifications)
            for name, known in wallet_offer(can_sign=True).items()
        ],
        kinds=KINDS,
        faults=faults(),
        close_codes=CLOSE_CODES,
        socket_url=socket_url(request),
        bounds=bounds(),
    )


def faults() -> list[Fault]:
    """Return the wallet's own errors by code, some of them with words for each case."""
    return sorted(
        Fault(kind.code, getattr(kind, "text", ""), raised_when(kind))
        for kind in error_classes()
    )


@require_safe
def openrpc(request: HttpRequest) -> HttpResponse:
    """Answer with the wallet's OpenRPC document, to anybody."""
    text = dump(document(socket_url(request), wallet_offer(can_sign=True)))
    response = HttpResponse(text, "application/json")
    response["Access-Control-Allow-Origin"] = "*"
    return response


def socket_url(request: HttpRequest) -> str:
    """Return where dapps connect."""
    return base_url(request).replace("http", "ws", 1) + "/ws/dapp"


def bounds() -> list[Bound]:
    """Return what holds for every dapp."""
    days = f"{conf.token_lifetime().days} days"
    minutes = f"{conf.request_lifetime().total_seconds() / 60:g} min"
    return [
        Bound("Time for the user to answer", minutes, "WALLETS_REQUEST_SECONDS"),
        Bound(
            "Requests that wait for one user",
            f"{conf.max_pending_requests()}",
            "WALLETS_MAX_PENDING",
        ),
        Bound("Life of a token after its last use", days, "WALLETS_TOKEN_DAYS"),
        Bound("Life of a page's code", f"{PAGE_CODE_LIFETIME.seconds} s"),
        Bound("Life of a program's code", f"{PROGRAM_CODE_LIFETIME.seconds // 60} min"),
        Bound("Sockets of a dapp", f"{MAX_SOCKETS}"),
        Bound("Calls a second on a socket", f"{limits.CALLS_PER_SECOND:g}"),
        Bound("Calls at once on a socket", f"{limits.BURST:g}"),
        Bound("Calls under way on a socket", f"{limits.MAX_CALLS}"),
        Bound("Calls in a batch", f"{limits.MAX_BATCH_CALLS}"),
        Bound("Subscriptions of a socket", f"{limits.MAX_SUBSCRIPTIONS}"),
        Bound("Unread bytes of a socket", f"{outbox.MAX_WAITING_BYTES // 2**20} MiB"),
        Bound("Accounts of a user", f"{MAX_ACCOUNTS}"),
    ]
