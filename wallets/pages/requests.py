"""The inbox of pending requests, and the consent page."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from keys.models import User
from keys.policy import with_own_calls
from wallets.consents import get_consent
from wallets.identity import parse_origin
from wallets.models import (
    ADD_CHAIN,
    FOR_SESSIONS,
    Account,
    ConsentRequest,
    ConsentRequestQuerySet,
    Dapp,
    DappKind,
)
from wallets.offers import serves_chains
from wallets.pages.choices import consent_options, first_choice, read_choice
from wallets.pages.policy import cause_of, user_of, wallet_page
from wallets.pages.recent import after_recent_login
from wallets.pages.words import ASKS, identity
from wallets.proposals import Choice, NothingChosen
from wallets.services.consent import approve_session
from wallets.services.dapps import reject_and_block
from wallets.services.requests import NotPending, reject_request
from wallets.services.sessions import Stale


@with_own_calls
@wallet_page
@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Show the user's pending requests, oldest first.

    `?of=<origin>`, in a window that a web page has opened, redirects to that page's
    last request.
    """
    own = ConsentRequest.objects.filter(dapp__user=user_of(request))
    waiting = own.pending().select_related("dapp").order_by("id")
    if "of" in request.GET and (found := _last_of(waiting, request.GET["of"])):
        query = urlencode({"of": request.GET["of"]})
        return redirect(f"{page_of(found)}?{query}")
    lines = [
        {
            "found": found,
            "identity": identity(found.dapp),
            "asks": ASKS[found.method],
            "page": page_of(found),
        }
        for found in waiting
    ]
    user = user_of(request)
    context = {
        "lines": lines,
        "has_account": Account.objects.filter(user=user).exists(),
        "serves_chains": serves_chains(),
        "has_dapp": Dapp.objects.filter(user=user).exists(),
    }
    return render(request, "wallets/inbox.html", context)


@wallet_page
@require_http_methods(["GET", "HEAD", "POST"])
@after_recent_login
def consent(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a request for a session. A POST approves or rejects it."""
    found = get_object_or_404(_own(user_of(request)), pk=pk)
    if request.method != "POST":
        return _show(request, found)
    try:
        message = _decide(request, found)
    except NotPending:
        found.refresh_from_db()
        return _show(request, found, status=HTTPStatus.CONFLICT)
    except Stale:
        fault = "The request has changed since you opened this page. Check it again."
        return _show(request, found, fault=fault, status=HTTPStatus.CONFLICT)
    except NothingChosen as error:
        return _show(request, found, fault=str(error), status=HTTPStatus.BAD_REQUEST)
    messages.success(request, message)
    return to_inbox(request)


def to_inbox(request: HttpRequest) -> HttpResponse:
    """Redirect to the inbox after a decision.

    A window that a web page has opened is redirected to the page's next request, and
    closes if there is none.
    """
    query = {"of": request.GET["of"], "done": ""} if "of" in request.GET else None
    return redirect(reverse("wallet:inbox", query=query))


def _decide(request: HttpRequest, found: ConsentRequest) -> str:
    """Approve or reject a request by the form's button; return a message for the user.

    Any value other than "approve" rejects the request.
    Raises: NotPending, Stale, NothingChosen.
    """
    if request.POST.get("decision") != "approve":
        return reject(request, found)
    approve_session(
        request_id=found.pk,
        user=user_of(request),
        digest=request.POST.get("digest", ""),
        choice=read_choice(request.POST),
        cause=cause_of(request),
    )
    return f"{found.dapp.name} now has the permissions that you selected."


def reject(request: HttpRequest, found: ConsentRequest) -> str:
    """Reject a request of any kind; return a message for the user.

    Raises: NotPending.
    """
    user, cause = user_of(request), cause_of(request)
    if request.POST.get("decision") == "block":
        reject_and_block(request_id=found.pk, user=user, cause=cause)
        return f"Rejected the request and blocked {found.dapp.name}."
    reject_request(request_id=found.pk, user=user, cause=cause)
    return "Rejected the request."


def _last_of(waiting: ConsentRequestQuerySet, origin: str) -> ConsentRequest | None:
    """Return the last pending request of a web page, None without one."""
    try:
        page = {"dapp__kind": DappKind.WEB, "dapp__ident": parse_origin(origin)}
    except ValueError:
        return None
    return waiting.filter(**page).last()


def page_of(found: ConsentRequest) -> str:
    """Return the URL path of the page on which a request is decided."""
    kind = "consent" if found.method in FOR_SESSIONS else "signature"
    return reverse(f"wallet:{kind}", args=[found.pk])


def show_closed(
    request: HttpRequest, found: ConsentRequest, status: HTTPStatus
) -> HttpResponse:
    """Return the page of a request that can no longer be decided."""
    context = {
        "found": found,
        "identity": identity(found.dapp),
        "is_session": found.method in FOR_SESSIONS,
    }
    return render(request, "wallets/closed.html", context, status=status)


def _show(
    request: HttpRequest,
    found: ConsentRequest,
    *,
    fault: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    """Return the consent page, or the outcome of a request that is closed.

    After an invalid choice, the checkboxes keep the user's values.
    """
    if not ConsentRequest.objects.pending().filter(pk=found.pk).exists():
        return show_closed(request, found, status)
    asked = get_consent(found)
    choice = first_choice(asked)
    if status == HTTPStatus.BAD_REQUEST:
        choice = _left(request, choice)
    context = {
        "found": found,
        "identity": identity(found.dapp),
        "consent": asked,
        "options": consent_options(asked, choice),
        "is_first": not asked.session.scopes,
        "is_chain": found.method == ADD_CHAIN,
        "fault": fault,
    }
    return render(request, "wallets/consent.html", context, status=status)


def _left(request: HttpRequest, otherwise: Choice) -> Choice:
    """Return the posted choice, or `otherwise` if it is invalid."""
    try:
        return read_choice(request.POST)
    except NothingChosen:
        return otherwise


def _own(user: User) -> ConsentRequestQuerySet:
    """Return the requests for sessions of a user's dapps."""
    own = ConsentRequest.objects.for_sessions().filter(dapp__user=user)
    return own.select_related("dapp")
