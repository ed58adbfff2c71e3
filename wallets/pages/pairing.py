"""The pages on which a user pairs a web page or a program.

A web page opens the first one in a window of its own. The code goes back to the
window's opener, and only to the origin that the user has approved. So receiving the
code proves that origin.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods, require_POST

from keys.policy import with_own_calls
from legible.fields import validate_name
from wallets.identity import parse_origin
from wallets.models import Dapp, DappKind
from wallets.offers import serves_chains
from wallets.pages.policy import user_of, wallet_page
from wallets.pages.words import identity
from wallets.services.pairing import (
    PROGRAM_CODE_LIFETIME,
    DappBlocked,
    is_page_blocked,
    start_page_pairing,
    start_program_pairing,
)


class PageForm(forms.Form):
    """The parameters of a web page's request for pairing.

    code_challenge: the S256 challenge of RFC 7636 (PKCE).
    state: returned unchanged, so that the page can match the response to its request.
    """

    origin = forms.CharField(max_length=300)
    code_challenge = forms.RegexField(r"^[-_A-Za-z0-9]{43}\Z")
    state = forms.RegexField(r"^[-_A-Za-z0-9]{1,128}\Z")

    def clean_origin(self) -> str:
        """Return the origin in normal form."""
        try:
            return parse_origin(self.cleaned_data["origin"])
        except ValueError as error:
            raise ValidationError(f"This is {error}.") from error


class ProgramForm(forms.Form):
    """The user's name for a program."""

    label = forms.CharField(
        max_length=60,
        validators=[validate_name],
        error_messages={"required": "Give the program a name."},
    )


@with_own_calls
@cache_control(private=True, no_store=True)
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """Ask the user to pair a web page; if they agree, send the page a code.

    The user is not asked about a page that they or staff have blocked.
    """
    given = request.POST if request.method == "POST" else request.GET
    form = PageForm(given)
    if not form.is_valid():
        context: dict[str, Any] = {"form": form}
        return _render(request, "faulty", context, HTTPStatus.BAD_REQUEST)
    asked = form.cleaned_data
    who = identity(Dapp(kind=DappKind.WEB, ident=asked["origin"]))
    context = {"asked": asked, "identity": who}
    if not request.user.is_authenticated:
        return _render(request, "anonymous", context)
    if is_page_blocked(user=user_of(request), origin=asked["origin"]):
        return _render(request, "blocked", context, HTTPStatus.FORBIDDEN)
    if request.method != "POST":
        context["serves_chains"] = serves_chains()
        return _render(request, "question", context)
    if request.POST.get("decision") != "allow":
        return _render(request, "answer", context)
    try:
        code = start_page_pairing(
            user=user_of(request),
            origin=asked["origin"],
            challenge=asked["code_challenge"],
        )
    except DappBlocked:
        return _render(request, "blocked", context, HTTPStatus.FORBIDDEN)
    return _render(request, "answer", {**context, "code": code})


@wallet_page
@require_POST
def program(request: HttpRequest) -> HttpResponse:
    """Show a one-time code for pairing a program of the user."""
    form = ProgramForm(request.POST)
    code = ""
    if form.is_valid():
        label = form.cleaned_data["label"]
        code = start_program_pairing(user=user_of(request), label=label)
    minutes = int(PROGRAM_CODE_LIFETIME.total_seconds() // 60)
    context = {"form": form, "code": code, "minutes": minutes}
    status = HTTPStatus.OK if code else HTTPStatus.BAD_REQUEST
    return render(request, "wallets/program.html", context, status=status)


def _render(
    request: HttpRequest,
    case: str,
    context: dict[str, Any],
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    context["case"] = case
    return render(request, "wallets/connect.html", context, status=status)
