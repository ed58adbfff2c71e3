"""The pages of a user's dapps: their permissions, how to revoke them, and their activity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from wallets.caip import WALLET, parse_scope
from wallets.models import Account, Activity, Dapp, LiveSocket
from wallets.offers import offer_to
from wallets.pages.choices import current_choice, read_choice, session_options
from wallets.pages.policy import cause_of, user_of, wallet_page
from wallets.pages.words import group_titles, identity, scope_names
from wallets.proposals import Choice, NothingChosen
from wallets.scopes import requested_addresses
from wallets.services.dapps import (
    block_dapp,
    disconnect_all,
    disconnect_dapp,
    unblock_dapp,
)
from wallets.services.sessions import Stale, edit_session

DAPPS = 50
"""Dapps per page."""

ACTIVITY_LINES = 50
"""Entries of the activity log per page."""


@wallet_page
@require_safe
def connections(request: HttpRequest) -> HttpResponse:
    """Show every dapp with its permissions, the most recently used first."""
    live = Q(tokens__revoked_at=None, tokens__expires_at__gt=timezone.now())
    dapps = (
        Dapp.objects.filter(user=user_of(request))
        .select_related("session")
        .annotate(live_tokens=Count("tokens", filter=live))
        .order_by(F("last_used_at").desc(nulls_last=True), "-id")
    )
    page = Paginator(dapps, DAPPS).get_page(request.GET.get("page"))
    names = scope_names()
    accounts = Account.objects.filter(user=user_of(request))
    labels = {account.named: account.label for account in accounts}
    sockets = _open_sockets(page)
    lines = [
        {
            "dapp": dapp,
            "identity": identity(dapp),
            "networks": [
                names.get(scope, scope)
                for scope in dapp.session.scopes
                if parse_scope(scope).namespace != WALLET
            ],
            "permissions": group_titles(dapp.session.scopes.values()),
            "accounts": [
                (address.address, labels.get(address, ""))
                for address in requested_addresses(dapp.session.scopes)
            ],
            "sockets": sockets[dapp.pk],
            "places": sorted({one.remote_address or "?" for one in sockets[dapp.pk]}),
        }
        for dapp in page
    ]
    context = {"page": page, "lines": lines, "has_account": bool(labels)}
    return render(request, "wallets/connections.html", context)


@wallet_page
@require_http_methods(["GET", "HEAD", "POST"])
def connection(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the permissions of one dapp. A POST changes them."""
    dapp = _own(request, pk)
    if request.method != "POST":
        return _show(request, dapp, current_choice(dapp.session.scopes))
    choice = current_choice(dapp.session.scopes)
    try:
        version = int(request.POST.get("version", "")[:19])
        choice = read_choice(request.POST)
        session = edit_session(
            dapp=dapp, choice=choice, version=version, cause=cause_of(request)
        )
    except (ValueError, Stale) as error:  # NothingChosen is a ValueError
        if isinstance(error, NothingChosen):
            return _show(request, dapp, choice, str(error), HTTPStatus.BAD_REQUEST)
        dapp = _own(request, pk)
        choice = current_choice(dapp.session.scopes)
        why = "The session has changed since you opened this page. Its current state is shown."
        return _show(request, dapp, choice, why, HTTPStatus.CONFLICT)
    messages.success(request, "Saved." if session.scopes else "The session has ended.")
    return redirect("wallet:connection", pk)


@wallet_page
@require_POST
def disconnect(request: HttpRequest, pk: int) -> HttpResponse:
    """End a dapp's session and revoke its tokens. The dapp then has to be paired again."""
    dapp = _own(request, pk)
    disconnect_dapp(dapp=dapp, cause=cause_of(request))
    messages.success(request, f"Disconnected {dapp.name}.")
    return redirect("wallet:connections")


@wallet_page
@require_POST
def block(request: HttpRequest, pk: int) -> HttpResponse:
    """Disconnect and block a dapp."""
    dapp = _own(request, pk)
    block_dapp(dapp=dapp, cause=cause_of(request))
    messages.success(request, f"Blocked {dapp.name}.")
    return redirect("wallet:connections")


@wallet_page
@require_POST
def unblock(request: HttpRequest, pk: int) -> HttpResponse:
    """Allow a blocked dapp to be paired again."""
    dapp = _own(request, pk)
    unblock_dapp(dapp=dapp, cause=cause_of(request))
    messages.success(request, f"Unblocked {dapp.name}.")
    return redirect("wallet:connections")


@wallet_page
@require_POST
def disconnect_everything(request: HttpRequest) -> HttpResponse:
    """Disconnect all of the user's dapps."""
    disconnect_all(user=user_of(request), cause=cause_of(request))
    messages.success(request, "Disconnected all dapps.")
    return redirect("wallet:connections")


def _open_sockets(dapps: Iterable[Dapp]) -> Mapping[int, list[LiveSocket]]:
    """Return open sockets by the ids of their dapps."""
    found: defaultdict[int, list[LiveSocket]] = defaultdict(list)
    for one in LiveSocket.objects.open().filter(dapp__in=list(dapps)):
        found[one.dapp_id].append(one)
    return found


def _show(
    request: HttpRequest,
    dapp: Dapp,
    choice: Choice,
    fault: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    session = dapp.session
    own = Account.objects.filter(user_id=dapp.user_id).select_related("keystore")
    accounts = list(own)
    context = {
        "dapp": dapp,
        "identity": identity(dapp),
        "session": session,
        "options": session_options(
            session.scopes, offer_to(dapp.user_id), accounts, choice
        ),
        "fault": fault,
    }
    return render(request, "wallets/connection.html", context, status=status)


def _own(request: HttpRequest, pk: int) -> Dapp:
    """Return a dapp of the user. Raises: Http404."""
    own = Dapp.objects.filter(user=user_of(request)).select_related("session")
    return get_object_or_404(own, pk=pk)


@wallet_page
@require_safe
def activity(request: HttpRequest) -> HttpResponse:
    """Show the user's activity log, newest first, in pages."""
    lines = Activity.objects.filter(user=user_of(request))
    page = Paginator(lines, ACTIVITY_LINES).get_page(request.GET.get("page"))
    return render(request, "wallets/activity.html", {"page": page})
