"""The list of an account's keys, and the page of each key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from keys.accounts.acting import acting_of, actor_of
from keys.agreements import agreement_of, agreements
from keys.dashboard.access import dashboard_page, opened_networks, own_key
from keys.dashboard.refusals import latest_refusals
from keys.models import ApiKey, KeyVersion, Plan, Role
from keys.selectors import is_held
from keys.services import delete_key, disable_key, update_key
from keys.services.own_keys import create_own_key, enable_own_key, may_create_key
from keys.states import EXPIRING, State, live_versions, state_of
from keys.usage.daily import credits_today, quota_of
from networks.models import Network

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _NetworksField = forms.ModelMultipleChoiceField[Network]
else:
    _NetworksField = forms.ModelMultipleChoiceField

KEYS = 20
"""Maximum number of keys on a page of the list. A phone shows about three at a time."""


class NameForm(forms.Form):
    """Form of a key's name."""

    name = forms.CharField(
        max_length=100,
        help_text="Such as the name of the program that uses the key.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class NetworksField(_NetworksField):
    """Selection of networks by checkboxes."""

    def label_from_instance(self, obj: Network) -> str:
        """Return the label of a network's checkbox."""
        return obj.name


class KeyForm(NameForm):
    """Form of a new key."""

    networks = NetworksField(
        Network.objects.visible(),
        to_field_name="slug",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )


class TypedForm(forms.Form):
    """Confirmation of an irreversible action: the user types a given word.

    word: the expected word.
    """

    typed = forms.CharField(
        label="", max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, word: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.word = word
        self.fields["typed"].label = f"Type {word} to confirm"

    def clean_typed(self) -> str:
        """Return the word. Raises: ValidationError if it is not the expected one."""
        typed = str(self.cleaned_data["typed"])
        if typed != self.word:
            raise ValidationError(f"This is not {self.word}. Type it exactly as shown.")
        return typed


@dashboard_page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the keys, the newest first."""
    account = acting_of(request).account
    own = ApiKey.objects.kept().filter(owner=account).select_related("owner")
    keys = Paginator(own.prefetch_related("versions__use", "networks"), KEYS)
    page = keys.get_page(request.GET.get("page"))
    context = {
        "page": page,
        "lines": key_lines(page),
        "may_create": may_create_key(account),
    }
    return render(request, "dashboard/keys.html", context)


@dashboard_page(to_look=Role.DEVELOPER)
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Create a key. Its secret is made when the user reveals it."""
    form = KeyForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        fields = form.cleaned_data
        try:
            key = create_own_key(
                owner=acting_of(request).account,
                name=fields["name"],
                networks=fields["networks"],
                actor=actor_of(request),
            )
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            return redirect("dashboard:key", key.pk)
    return render(request, "dashboard/create.html", {"form": form})


@dashboard_page
@require_safe
def key(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a key."""
    key = own_key(request, pk)
    return _show(request, key, NameForm(initial={"name": key.name}))


@dashboard_page
@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename a key. An invalid name stays in its field."""
    key = own_key(request, pk)
    form = NameForm(request.POST)
    if form.is_valid():
        try:
            update_key(
                api_key=key, name=form.cleaned_data["name"], actor=actor_of(request)
            )
        except ValidationError as error:
            faults = error.message_dict if hasattr(error, "error_dict") else {}
            if "name" not in faults:
                raise  # the key was deleted
            form.add_error("name", faults["name"])
        else:
            messages.success(request, "The key is renamed.")
            return redirect("dashboard:key", pk)
    return _show(request, own_key(request, pk), form)


def _show(request: HttpRequest, key: ApiKey, rename: NameForm) -> HttpResponse:
    """Show a key. rename: the form for another name, perhaps with errors."""
    context = {
        "key": key,
        "state": state_of(key),
        "expiring": EXPIRING,
        "is_held": is_held(key),
        "networks": opened_networks(key),
        "last_used_at": last_used_at(key.versions.all()),
        "agreement": agreement_of(key),
        "quota": quota_of(key),
        "refusals": latest_refusals(key),
        "rename": rename,
    }
    status = HTTPStatus.BAD_REQUEST if rename.errors else HTTPStatus.OK
    return render(request, "dashboard/key.html", context, status=status)


@dashboard_page
@require_POST
def disable(request: HttpRequest, pk: int) -> HttpResponse:
    """Disable a key until it is enabled again."""
    disable_key(api_key=own_key(request, pk), actor=actor_of(request))
    messages.success(
        request, "The key is disabled. Calls with it are rejected from now on."
    )
    return redirect("dashboard:key", pk)


@dashboard_page
@require_POST
def enable(request: HttpRequest, pk: int) -> HttpResponse:
    """Enable a disabled key."""
    try:
        enable_own_key(api_key=own_key(request, pk), actor=actor_of(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, "The key is enabled.")
    return redirect("dashboard:key", pk)


@dashboard_page(to_look=Role.DEVELOPER)
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a key, after the user has confirmed by typing its name."""
    key = own_key(request, pk)
    form = TypedForm(str(key), request.POST if request.method == "POST" else None)
    if not form.is_valid():
        context = {"key": key, "form": form}
        return render(request, "dashboard/delete.html", context)
    delete_key(api_key=key, actor=actor_of(request))
    messages.success(request, f"{key} is deleted.")
    return redirect("dashboard:keys")


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key in the list of keys.

    versions: its valid secrets.
    networks: those that it grants access to, empty for all.
    plan: the plan whose limits apply, or None if there are no plans.
    credits_today: credits used since midnight UTC.
    """

    key: ApiKey
    state: State
    versions: list[KeyVersion]
    networks: list[Network]
    last_used_at: datetime | None
    plan: Plan | None
    credits_today: int


def key_lines(keys: Iterable[ApiKey]) -> list[KeyLine]:
    """Return summaries of keys whose owner, secrets and networks are prefetched."""
    found = list(keys)
    credits, agreed = credits_today(found), agreements(found)
    return [
        KeyLine(
            key=key,
            state=state_of(key),
            versions=live_versions(key),
            networks=list(key.networks.all()),
            last_used_at=last_used_at(key.versions.all()),
            plan=agreed[key.pk].plan,
            credits_today=credits.get(key.pk, 0),
        )
        for key in found
    ]


def last_used_at(versions: Iterable[KeyVersion]) -> datetime | None:
    """Return the time at which any of the secrets was last used, or None."""
    uses = [version.use.last_used_at for version in versions if hasattr(version, "use")]
    return max(uses, default=None)
