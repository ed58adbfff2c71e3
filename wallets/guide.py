"""The documentation's page on the wallet, generated from the code and the networks."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from guide.error_entries import CodedError, Section
from guide.views import show_page
from jsonrpc.text import dump
from keys.policy import without_scripts
from keys.site import base_url
from nodeapi.frames import close_codes
from wallets.methods.chain import KINDS
from wallets.methods.outer import session_methods
from wallets.offers import wallet_offer
from wallets.openrpc import document, error_classes, raised_when
from wallets.services.accounts import MAX_ACCOUNTS
from wallets.services.pairing import PAGE_CODE_LIFETIME, PROGRAM_CODE_LIFETIME
from wallets.services.presence import MAX_SOCKETS
from wallets.sockets import limits


class Bound(NamedTuple):
    """A limit. setting: the setting that changes it, "" for none."""

    what: str
    value: str
    setting: str = ""


CLOSE_CODES = [
    (close_codes.REVOKED, "the token is no longer valid: pair again"),
    (close_codes.TOO_FAST, "calls continued although they were rejected"),
    (close_codes.SLOW_READER, "responses or events were not read"),
    (close_codes.NOT_TEXT, "a frame was not a text frame"),
    (close_codes.UNEXPECTED_FRAME, "this socket accepts no frames"),
    (close_codes.SUBSCRIPTION_FAILED, "a subscription could not deliver every event"),
]
"""The close codes of the wallet's sockets, each with its reason."""

PROVIDER_ERRORS = [
    CodedError(
        1013,
        "Disconnected. Connecting…",
        "When the connection to the wallet is lost, in the event disconnect.",
        "Wait for the event connect. The script connects again, and renews "
        "subscriptions.",
    ),
    CodedError(
        4900,
        "The wallet can't be reached.",
        "When the wallet is unreachable, the socket closes before the answer, or the user "
        "has disconnected the dapp.",
        "Check whether the call was carried out before you repeat it. After the user has "
        "disconnected the dapp, call eth_requestAccounts.",
    ),
    CodedError(
        4901,
        "The wallet serves no network at present.",
        "When the wallet serves no network with blocks.",
        "Try again later, or ask the provider of the wallet.",
    ),
    CodedError(
        4902,
        "Unrecognized chain ID <id>. Try adding the chain using "
        "wallet_addEthereumChain first.",
        "When a dapp switches to a chain that the wallet does not serve.",
        "Use one of the chains that the page about the wallet lists.",
    ),
]
"""The errors of `static/wallet/connect/` that the wallet's sockets do not report."""


@without_scripts
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show how dapps connect to the wallet, its methods, errors and limits."""
    return show_page(
        request,
        "wallet",
        methods=list(session_methods),
        scopes=[
            (name, known.all_methods, known.notifications)
            for name, known in wallet_offer(can_sign=True).items()
        ],
        kinds=KINDS,
        close_codes=CLOSE_CODES,
        socket_url=socket_url(request),
        bounds=bounds(),
    )


def wallet_errors() -> Section:
    """Return the errors of the wallet for `/docs/errors`, sorted by code."""
    text = (
        "Dapps get these errors over the WebSocket of the wallet. Calls made with "
        "wallet_invokeMethod can also fail with the errors above."
    )
    found = sorted(
        CodedError(kind.code, kind.text, raised_when(kind), kind.remedy)
        for kind in error_classes()
    )
    return Section("wallet", "Errors of the wallet", text, found)


def provider_errors() -> Section:
    """Return the errors that only connect.js reports, for `/docs/errors`."""
    text = (
        "Pages with the wallet's script get these errors from its EIP-1193 provider, "
        "besides those of the wallet."
    )
    return Section("provider", "Errors of the wallet's script", text, PROVIDER_ERRORS)


@require_safe
def openrpc(request: HttpRequest) -> HttpResponse:
    """Return the wallet's OpenRPC document; any origin may read it."""
    text = dump(document(socket_url(request), wallet_offer(can_sign=True)))
    response = HttpResponse(text, "application/json")
    response["Access-Control-Allow-Origin"] = "*"
    return response


def socket_url(request: HttpRequest) -> str:
    """Return the URL of the dapps' WebSocket: `wss://wallet.example/ws/dapp`."""
    return base_url(request).replace("http", "ws", 1) + "/ws/dapp"


def bounds() -> list[Bound]:
    """Return the limits that hold for every dapp."""
    days = f"{settings.WALLETS_TOKEN_DAYS:g} days"
    minutes = f"{settings.WALLETS_REQUEST_SECONDS / 60:g} min"
    return [
        Bound("Time for the user's decision", minutes, "WALLETS_REQUEST_SECONDS"),
        Bound(
            "Pending requests of one user",
            f"{settings.WALLETS_MAX_PENDING}",
            "WALLETS_MAX_PENDING",
        ),
        Bound("Lifetime of a token after its last use", days, "WALLETS_TOKEN_DAYS"),
        Bound("Lifetime of a page's pairing code", f"{PAGE_CODE_LIFETIME.seconds} s"),
        Bound(
            "Lifetime of a program's pairing code",
            f"{PROGRAM_CODE_LIFETIME.seconds // 60} min",
        ),
        Bound("Sockets of a dapp", f"{MAX_SOCKETS}"),
        Bound("Calls a second on a socket", f"{limits.CALLS_PER_SECOND:g}"),
        Bound("Burst of calls on a socket", f"{limits.BURST:g}"),
        Bound("Calls in progress on a socket", f"{limits.MAX_CALLS}"),
        Bound("Calls in a batch", f"{limits.MAX_BATCH_CALLS}"),
        Bound("Subscriptions of a socket", f"{limits.MAX_SUBSCRIPTIONS}"),
        Bound("Unread bytes of a socket", f"{limits.UNREAD_BYTES // 2**20} MiB"),
        Bound("Accounts of a user", f"{MAX_ACCOUNTS}"),
    ]
