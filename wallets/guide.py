"""The documentation's page on the wallet, made from the code and the networks."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from keys.addresses import base_url
from keys.policy import without_scripts
from nodeapi.guide.views import show_page
from wallets import conf, errors
from wallets.errors import WalletError
from wallets.methods.chain import KINDS
from wallets.methods.outer import session_methods
from wallets.offers import wallet_offer
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
        socket_url=base_url(request).replace("http", "ws", 1) + "/ws/dapp",
        bounds=bounds(),
    )


def faults() -> list[Fault]:
    """Return the wallet's own errors by code, some of them with words for each case."""
    kinds = [
        one
        for _, one in inspect.getmembers(errors, inspect.isclass)
        if issubclass(one, WalletError) and one is not WalletError
    ]
    return sorted(
        Fault(kind.code, getattr(kind, "text", ""), _when(kind)) for kind in kinds
    )


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


def _when(kind: type[WalletError]) -> str:
    """Return the first sentence of an error's docstring, from its "when" on."""
    text = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    words = " ".join(text.removeprefix("Raised ").split())
    return words[:1].upper() + words[1:]
