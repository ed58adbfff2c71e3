"""The inbox, and the consent page: what a dapp asks for, and what the user says."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from keys.models import User
from wallets.changes import Cause
from wallets.consents import get_consent
from wallets.models import CREATE_SESSION, ConsentRequest, ConsentRequestQuerySet
from wallets.pages.choices import consent_options, first_choice, read_choice
from wallets.pages.policy import cause_of, user_of, wallet_page, with_own_scripts
from wallets.pages.recent import after_recent_login
from wallets.pages.words import identity
from wallets.proposals import Choice, NothingChosen
from wallets.services.consent import approve_session
from wallets.services.dapps import block_dapp
from wallets.services.requests import NotPending, reject_request
from wallets.services.sessions import Stale


@with_own_scripts
@wallet_page
@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Show what waits for the user, the oldest first."""
    waiting = _own(user_of(request)).pending().order_by("id")
    lines = [(found, identity(found.dapp)) for found in waiting]
    return render(request, "wallets/inbox.html", {"lines": lines})


@wallet_page
@require_http_methods(["GET", "HEAD", "POST"])
@after_recent_login
def consent(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what a dapp asks for; decide it."""
    found = get_object_or_404(_own(user_of(request)), pk=pk)
    if request.method != "POST":
        return _show(request, found)
    try:
        message = _decide(request, found)
    except NotPending:
        found.refresh_from_db()
        return _show(request, found, status=HTTPStatus.CONFLICT)
    except Stale:
        fault = "What is asked has changed meanwhile. Please look at it again."
        return _show(request, found, fault=fault, status=HTTPStatus.CONFLICT)
    except NothingChosen as error:
        return _show(request, found, fault=str(error), status=HTTPStatus.BAD_REQUEST)
    messages.success(request, message)
    return redirect("wallet:inbox")


def _decide(request: HttpRequest, found: ConsentRequest) -> str:
    """Do what the button says, and return what has been done; anything else is a no.

    Raises: NotPending, Stale, NothingChosen.
    """
    user, cause, name = user_of(request), cause_of(request), found.dapp.name
    decision = request.POST.get("decision")
    if decision == "approve":
        approve_session(
            request_id=found.pk,
            user=user,
            digest=request.POST.get("digest", ""),
            choice=read_choice(request.POST),
            cause=cause,
        )
        return f"{name} may now do what you have left ticked."
    if decision == "block":
        _reject_for_good(found, user, cause)
        return f"Denied. {name} is blocked."
    reject_request(request_id=found.pk, user=user, cause=cause)
    return f"Denied. {name} was told no."


@transaction.atomic
def _reject_for_good(found: ConsentRequest, user: User, cause: Cause) -> None:
    reject_request(request_id=found.pk, user=user, cause=cause)
    block_dapp(dapp=found.dapp, cause=cause)


def _show(
    request: HttpRequest,
    found: ConsentRequest,
    *,
    fault: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    """Return the consent page, or what became of the request when it is over.

    After a choice of nothing the boxes are as the user has left them.
    """
    who = identity(found.dapp)
    if not ConsentRequest.objects.pending().filter(pk=found.pk).exists():
        context = {"found": found, "identity": who}
        return render(request, "wallets/over.html", context, status=status)
    asked = get_consent(found)
    choice = first_choice(asked)
    if status == HTTPStatus.BAD_REQUEST:
        choice = _left(request, choice)
    context = {
        "found": found,
        "identity": who,
        "consent": asked,
        "options": consent_options(asked, choice),
        "is_first": not asked.session.version,
        "fault": fault,
    }
    return render(request, "wallets/consent.html", context, status=status)


def _left(request: HttpRequest, otherwise: Choice) -> Choice:
    """Return what the user has left ticked, as far as it can be read."""
    try:
        return read_choice(request.POST)
    except NothingChosen:
        return otherwise


def _own(user: User) -> ConsentRequestQuerySet:
    """Return the requests to a user that these pages show."""
    own = ConsentRequest.objects.filter(dapp__user=user, method=CREATE_SESSION)
    return own.select_related("dapp")
