"""Pages that reveal, roll and revoke a key's secrets."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from keys.accounts.acting import acting_of, actor_of
from keys.dashboard.access import dashboard_page, opened_networks, own_key, own_version
from keys.dashboard.api_keys import TypedForm
from keys.dashboard.snippets import export_line, snippets
from keys.models import Role
from keys.policy import with_own_calls
from keys.services import (
    DEFAULT_OVERLAP,
    OVERLAPS,
    IssuedKey,
    reveal_key,
    revoke_version,
    roll_key,
)
from keys.services.own_keys import create_first_key
from keys.site import base_url, network_url
from keys.states import live_versions

FIRST_NAME = "First key"
"""Name of a key that is created without a form. The customer can rename it."""

_SECONDS = [str(int(overlap.total_seconds())) for overlap in OVERLAPS]


class RollForm(forms.Form):
    """Form for rolling a key: the time for which the old secrets stay valid."""

    overlap = forms.ChoiceField(
        choices=[(seconds, seconds) for seconds in _SECONDS],
        initial=str(int(DEFAULT_OVERLAP.total_seconds())),
    )


@with_own_calls  # a button makes the first call
@dashboard_page
@require_POST
def first(request: HttpRequest) -> HttpResponse:
    """Create the first key of an account, and show its secret once."""
    try:
        issued = create_first_key(
            owner=acting_of(request).account, name=FIRST_NAME, actor=actor_of(request)
        )
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("dashboard:keys")
    return _show(request, issued)


@with_own_calls
@dashboard_page
@require_POST
def reveal(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the first secret of a key and show it once."""
    key = own_key(request, pk)
    try:
        issued = reveal_key(api_key=key, actor=actor_of(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("dashboard:key", pk)
    return _show(request, issued)


@with_own_calls
@dashboard_page(to_look=Role.DEVELOPER)
@require_http_methods(["GET", "HEAD", "POST"])
def roll(request: HttpRequest, pk: int) -> HttpResponse:
    """Replace the secrets of a key by a new one, and show it once."""
    key = own_key(request, pk)
    form = RollForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        overlap = timedelta(seconds=int(form.cleaned_data["overlap"]))
        try:
            issued = roll_key(api_key=key, overlap=overlap, actor=actor_of(request))
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            return _show(request, issued)
    now = timezone.now()
    context = {
        "key": key,
        "form": form,
        "chosen": form["overlap"].value(),
        "ends": [
            (seconds, overlap, now + overlap)
            for seconds, overlap in zip(_SECONDS, OVERLAPS, strict=True)
        ],
        "live": live_versions(key),
    }
    status = HTTPStatus.BAD_REQUEST if form.errors else HTTPStatus.OK
    return render(request, "dashboard/roll.html", context, status=status)


@dashboard_page(to_look=Role.DEVELOPER)
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, pk: int, version_pk: int) -> HttpResponse:
    """Revoke a secret permanently, after the user has typed its last characters."""
    key = own_key(request, pk)
    version = own_version(key, version_pk)
    posted = request.POST if request.method == "POST" else None
    form = TypedForm(version.hint[-4:], posted)
    if not form.is_valid():
        context = {"key": key, "version": version, "form": form}
        return render(request, "dashboard/revoke.html", context)
    try:
        revoke_version(
            version=version, reason="by the customer", actor=actor_of(request)
        )
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, f"{version.hint} is revoked.")
    return redirect("dashboard:key", pk)


def _show(request: HttpRequest, issued: IssuedKey) -> HttpResponse:
    """Show a secret in the response itself, so that no URL and no other page has it."""
    key = own_key(request, issued.api_key.pk)
    base = base_url(request)
    networks = opened_networks(key)
    calls = (
        [] if not networks else snippets(network_url(base, networks[0]), issued.secret)
    )
    context = {
        "key": key,
        "issued": issued,
        "export": export_line(issued.secret),
        "call": calls[0] if calls else None,
        "network": networks[0] if networks else None,
        "old": [one for one in live_versions(key) if one.pk != issued.version.pk],
    }
    return render(request, "dashboard/revealed.html", context)
