"""Admin actions on selected API keys. Each asks for confirmation on a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers

from keys.accounts.acting import actor_of
from keys.admin.actions import ConfirmForm, ObjectActions
from keys.admin.fields import ExpiryWidget
from keys.dashboard.snippets import snippets
from keys.models import ApiKey, Entitlement, KeyLimits, KeyVersion
from keys.services import (
    DEFAULT_OVERLAP,
    OVERLAP_WORDS,
    OVERLAPS,
    Actor,
    IssuedKey,
    delete_key,
    disable_key,
    enable_key,
    grant_entitlement,
    revoke_version,
    roll_key,
)
from keys.services.limits import set_limits
from keys.site import base_url, network_url
from networks.models import Network, Tracer

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _LimitsForm = forms.ModelForm[KeyLimits]
else:
    _LimitsForm = forms.ModelForm


_SECONDS = [f"{overlap.total_seconds():.0f}" for overlap in OVERLAPS]


class ReasonForm(ConfirmForm):
    """Form for the reason of an action, which the key's owner can read."""

    reason = forms.CharField(
        max_length=200, help_text="The customer can read the reason."
    )


class RollForm(ConfirmForm):
    """Form for rolling a key: the time for which the old secrets stay valid."""

    overlap = forms.TypedChoiceField(
        help_text="Time for which the former secrets remain valid.",
        choices=list(zip(_SECONDS, OVERLAP_WORDS, strict=True)),
        coerce=lambda seconds: timedelta(seconds=int(seconds)),
        initial=f"{DEFAULT_OVERLAP.total_seconds():.0f}",
    )


class GrantForm(ConfirmForm):
    """Form for granting tracing: tracers, expiry and note."""

    network = forms.ModelChoiceField(Network.objects.all())
    tracers = forms.MultipleChoiceField(
        choices=Tracer.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=Entitlement._meta.get_field("tracers").help_text,
    )
    expires_at = forms.SplitDateTimeField(
        label="Expires (UTC)",
        required=False,
        widget=ExpiryWidget,
        help_text=Entitlement._meta.get_field("expires_at").help_text,
    )
    note = forms.CharField(
        max_length=200,
        required=False,
        help_text=Entitlement._meta.get_field("note").help_text,
    )


class LimitsForm(_LimitsForm, ConfirmForm):
    """Form for the plan of a key, and for limits that replace the plan's."""

    class Meta:
        """The fields of the terms."""

        model = KeyLimits
        fields = ["plan", "credits_per_second", "burst", "credits_per_day"]
        help_texts = {
            "credits_per_second": "Empty: that of the plan.",
            "burst": "Credits that can be spent at once. Empty: that of the plan, or twice "
            "the credits per second if they are set here.",
            "credits_per_day": "Resets at 00:00 UTC. Empty: the quota of the plan.",
        }


def _present_limits(api_key: ApiKey) -> dict[str, Any]:
    """Return the present terms of a key, as initial values of `LimitsForm`."""
    limits = KeyLimits.objects.filter(pk=api_key.pk).first()
    if limits is None:
        return {}
    return {name: getattr(limits, name) for name in LimitsForm.Meta.fields}


def _revoke_all(*, api_key: ApiKey, reason: str, actor: Actor) -> None:
    """Revoke all secrets of a key that have not ended."""
    for version in api_key.versions.unended():
        revoke_version(version=version, reason=reason, actor=actor)


@dataclass(frozen=True, slots=True)
class KeyAction:
    """An action on API keys, in the list of keys and on the page of a key."""

    title: str
    """Title of the page that asks, label of its button, and entry in the list's menu."""
    button: str
    """Text of the button on the page of a key."""
    permissions: tuple[str, ...]
    """The action is offered to users who have all of these permissions."""
    apply: Callable[..., object]
    """Changes one key. It gets `api_key`, `actor` and the form's values by name. An
    `IssuedKey` that it returns is shown. Raises: ValidationError, which is shown."""
    form: type[ConfirmForm] | None
    """The page that asks shows this form. None: the action asks for nothing."""
    initial: Callable[[ApiKey], dict[str, Any]] = lambda api_key: {}
    """Returns the initial values of the form for one key."""
    is_applicable: Callable[[ApiKey], bool] = lambda api_key: True
    """Returns whether the page of a key that is not deleted has the button."""
    is_for_one_key: bool = False
    """Whether the action refuses to change several keys."""


KEY_ACTIONS = {
    "roll": KeyAction(
        title="Roll and show the new secret",
        button="Roll",
        permissions=("keys.change_apikey",),
        apply=roll_key,
        form=RollForm,
        is_applicable=lambda api_key: api_key.versions.exists(),
        is_for_one_key=True,
    ),
    "revoke": KeyAction(
        title="Revoke all secrets",
        button="Revoke",
        permissions=("keys.change_apikey",),
        apply=_revoke_all,
        form=ReasonForm,
        is_applicable=lambda api_key: api_key.versions.unended().exists(),
    ),
    "limits": KeyAction(
        title="Set plan and limits",
        button="Plan and limits",
        # The first change of a key's limits adds a row.
        permissions=("keys.add_keylimits", "keys.change_keylimits"),
        apply=set_limits,
        form=LimitsForm,
        initial=_present_limits,
    ),
    "grant": KeyAction(
        title="Grant tracing on a network",
        button="Grant tracing",
        permissions=("keys.grant_entitlement",),
        apply=grant_entitlement,
        form=GrantForm,
    ),
    "disable": KeyAction(
        title="Disable",
        button="Disable",
        permissions=("keys.disable_apikey",),
        apply=disable_key,
        form=ReasonForm,
        is_applicable=lambda api_key: api_key.is_enabled,
    ),
    "enable": KeyAction(
        title="Enable",
        button="Enable",
        permissions=("keys.disable_apikey",),
        apply=enable_key,
        form=None,
        is_applicable=lambda api_key: not api_key.is_enabled,
    ),
    "delete_keys": KeyAction(
        title="Delete permanently",
        button="Delete",
        permissions=("keys.delete_apikey",),
        apply=delete_key,
        form=ConfirmForm,
    ),
}
"""The actions by their names in addresses and forms, in the order of the buttons.

`templates/admin/keys/apikey/confirm.html` explains their effects.
"""


def _admin_action(name: str) -> Callable[..., HttpResponse | None]:
    """Return the function that Django calls for an action on selected keys."""

    def run(
        key_admin: KeyActions, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        return key_admin.run_key_action(request, queryset, name)

    run.__name__ = name
    return admin.action(description=KEY_ACTIONS[name].title)(run)


class KeyActions(ObjectActions):
    """Offers the actions of `KEY_ACTIONS` in the list of keys and on the page of a key."""

    actions = [_admin_action(name) for name in KEY_ACTIONS]
    object_actions = {name: action.button for name, action in KEY_ACTIONS.items()}
    immediate_actions = [n for n, action in KEY_ACTIONS.items() if action.form is None]

    def applicable_actions(self, obj: ApiKey) -> set[str]:
        """Return the actions that make sense in the state of a key."""
        if obj.deleted_at is not None:
            return set()
        return {n for n, action in KEY_ACTIONS.items() if action.is_applicable(obj)}

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions for which the user has the permissions.

        Django calls this before it offers an action, and again before it executes one.
        """
        return {
            name: found
            for name, found in super().get_actions(request).items()
            if request.user.has_perms(KEY_ACTIONS[name].permissions)
        }

    def run_key_action(
        self, request: HttpRequest, queryset: QuerySet[ApiKey], name: str
    ) -> HttpResponse | None:
        """Ask for confirmation; when it is given, change each key in its own transaction.

        The user sees errors, and the secret if one was issued.
        """
        action = KEY_ACTIONS[name]
        keys = list(queryset)
        if action.is_for_one_key and len(keys) != 1:
            fault = f"Select exactly one key to {action.button.lower()}."
            self.message_user(request, fault, messages.ERROR)
            return None
        terms: dict[str, Any] = {}
        if action.form is not None:
            form = action.form(
                request.POST if "confirmed" in request.POST else None,
                initial=action.initial(keys[0]) if len(keys) == 1 else None,
            )
            if not form.is_valid():
                return self._ask(request, queryset, form, name)
            terms = {k: v for k, v in form.cleaned_data.items() if k != "confirmed"}
        done = 0
        for api_key in keys:
            try:
                result = action.apply(api_key=api_key, actor=actor_of(request), **terms)
            except ValidationError as error:
                fault = f"{api_key}: {' '.join(error.messages)}"
                self.message_user(request, fault, messages.ERROR)
                continue
            if isinstance(result, IssuedKey):
                return self.show_secret(request, result)
            done += 1
        if done:
            changed = f"Changed {done} key{pluralize(done)}."
            self.message_user(request, changed, messages.SUCCESS)
        return None

    def show_secret(self, request: HttpRequest, issued: IssuedKey) -> HttpResponse:
        """Show a secret in the response itself, so that it is not stored."""
        context = {
            **self.admin_site.each_context(request),
            "title": "API key issued",
            "opts": self.opts,
            "issued": issued,
            "call": _curl(request, issued),
        }
        response = TemplateResponse(request, "admin/keys/apikey/issued.html", context)
        add_never_cache_headers(response)
        return response

    def _ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[ApiKey],
        form: ConfirmForm,
        action: str,
    ) -> HttpResponse:
        """Show the confirmation page of an action on these keys."""
        versions = KeyVersion.objects.unended().filter(api_key__in=queryset)
        context = {
            **self.admin_site.each_context(request),
            "title": KEY_ACTIONS[action].title,
            "opts": self.opts,
            "action": action,
            "rows": queryset.select_related("owner"),
            "versions": versions.select_related("api_key__owner"),
            "form": form,
            "media": self.media + form.media,
            "back": self.place_of(request),
        }
        return TemplateResponse(request, "admin/keys/apikey/confirm.html", context)


def _curl(request: HttpRequest, issued: IssuedKey) -> str:
    """Return a first call with a new secret, "" without a network for it."""
    named = issued.api_key.networks.first() or Network.objects.visible().first()
    if named is None:
        return ""
    return snippets(network_url(base_url(request), named), issued.secret)[0].text
