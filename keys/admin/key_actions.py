"""Admin actions on selected API keys. Each asks for confirmation on a page."""

from __future__ import annotations

from collections.abc import Callable
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
from keys.admin.actions import ObjectActions
from keys.admin.fields import ExpiryWidget
from keys.dashboard.snippets import snippets
from keys.models import ApiKey, Entitlement, KeyLimits, KeyVersion
from keys.services import (
    DEFAULT_OVERLAP,
    OVERLAP_WORDS,
    OVERLAPS,
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


class ConfirmForm(forms.Form):
    """Form of a confirmation without further fields."""

    confirmed = forms.BooleanField(widget=forms.HiddenInput, initial=True)


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


class LimitsForm(_LimitsForm):
    """Form for the plan of a key, and for limits that replace the plan's."""

    confirmed = forms.BooleanField(widget=forms.HiddenInput, initial=True)

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


_TITLES = {
    "disable": "Disable",
    "roll": "Roll and show the new secret",
    "revoke": "Revoke all secrets",
    "grant": "Grant tracing on a network",
    "limits": "Set plan and limits",
    "delete_keys": "Delete permanently",
}
"""Titles of the confirmation pages and labels of their buttons."""


_LIMITS = ("keys.add_keylimits", "keys.change_keylimits")
"""Permissions for changes of limits. The first change of a key's limits adds a row."""


class KeyActions(ObjectActions):
    """The actions and their permissions.

    Django calls `has_<name>_permission` before it offers an action, and again before it
    executes the action.
    """

    actions = ["disable", "enable", "roll", "revoke", "grant", "limits", "delete_keys"]
    object_actions = {
        "roll": "Roll",
        "revoke": "Revoke",
        "limits": "Plan and limits",
        "grant": "Grant tracing",
        "disable": "Disable",
        "enable": "Enable",
        "delete_keys": "Delete",
    }
    immediate_actions = ("enable",)

    def applicable_actions(self, obj: ApiKey) -> set[str]:
        """Return the actions that make sense in the state of a key."""
        if obj.deleted_at is not None:
            return set()
        found = {"limits", "grant", "delete_keys"}
        found.add("disable" if obj.is_enabled else "enable")
        if obj.versions.exists():
            found.add("roll")
        if obj.versions.unended().exists():
            found.add("revoke")
        return found

    def has_disable_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may disable and enable keys."""
        return request.user.has_perm("keys.disable_apikey")

    def has_grant_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may grant tracing."""
        return request.user.has_perm("keys.grant_entitlement")

    def has_limit_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change plans and limits of keys."""
        return request.user.has_perms(_LIMITS)

    def has_retire_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may delete keys. See `delete_key`."""
        return request.user.has_perm("keys.delete_apikey")

    @admin.action(description=_TITLES["disable"], permissions=["disable"])
    def disable(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Show a form for the reason. When it is submitted, disable the keys."""
        form = self._answered(request, ReasonForm)
        if not form.is_valid():
            return self._ask(request, queryset, form, "disable")
        reason = form.cleaned_data["reason"]
        actor = actor_of(request)
        self._each(
            request,
            queryset,
            lambda key: disable_key(api_key=key, reason=reason, actor=actor),
        )
        return None

    @admin.action(description="Enable", permissions=["disable"])
    def enable(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Enable disabled keys."""
        actor = actor_of(request)
        self._each(request, queryset, lambda key: enable_key(api_key=key, actor=actor))

    @admin.action(description=_TITLES["roll"], permissions=["change"])
    def roll(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Show a form for the overlap. When it is submitted, roll the selected key."""
        if queryset.count() != 1:
            self.message_user(
                request, "Select exactly one key to roll.", messages.ERROR
            )
            return None
        form = self._answered(request, RollForm)
        if not form.is_valid():
            return self._ask(request, queryset, form, "roll")
        overlap = form.cleaned_data["overlap"]
        try:
            issued = roll_key(
                api_key=queryset.get(), overlap=overlap, actor=actor_of(request)
            )
        except ValidationError as error:
            self.message_user(request, " ".join(error.messages), messages.ERROR)
            return None
        return self.show_secret(request, issued)

    @admin.action(description=_TITLES["revoke"], permissions=["change"])
    def revoke(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Show a form for the reason. When it is submitted, revoke the secrets."""
        form = self._answered(request, ReasonForm)
        if not form.is_valid():
            return self._ask(request, queryset, form, "revoke")
        reason = form.cleaned_data["reason"]
        actor = actor_of(request)

        def revoke_all(api_key: ApiKey) -> None:
            for version in api_key.versions.unended():
                revoke_version(version=version, reason=reason, actor=actor)

        self._each(request, queryset, revoke_all)
        return None

    @admin.action(description=_TITLES["grant"], permissions=["grant"])
    def grant(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Show a form for the terms. When it is submitted, grant tracing to the keys."""
        form = self._answered(request, GrantForm)
        if not form.is_valid():
            return self._ask(request, queryset, form, "grant")
        names = ("network", "tracers", "expires_at", "note")
        terms: dict[str, Any] = {name: form.cleaned_data[name] for name in names}
        actor = actor_of(request)
        self._each(
            request,
            queryset,
            lambda key: grant_entitlement(api_key=key, actor=actor, **terms),
        )
        return None

    @admin.action(description=_TITLES["limits"], permissions=["limit"])
    def limits(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Show a form for plan and limits. When it is submitted, set them."""
        chosen = list(queryset.values_list("pk", flat=True)[:2])
        current = KeyLimits.objects.filter(pk__in=chosen).first()
        form = LimitsForm(
            request.POST if "confirmed" in request.POST else None,
            # Without the current row, which `set_limits` locks and compares.
            initial=_initial(current) if len(chosen) == 1 else None,
        )
        if not form.is_valid():
            return self._ask(request, queryset, form, "limits")
        terms = {name: form.cleaned_data[name] for name in LimitsForm.Meta.fields}
        actor = actor_of(request)
        self._each(
            request,
            queryset,
            lambda key: set_limits(api_key=key, actor=actor, **terms),
        )
        return None

    @admin.action(description=_TITLES["delete_keys"], permissions=["retire"])
    def delete_keys(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Ask for confirmation, and delete the keys when it is submitted."""
        form = self._answered(request, ConfirmForm)
        if not form.is_valid():
            return self._ask(request, queryset, form, "delete_keys")
        actor = actor_of(request)
        self._each(request, queryset, lambda key: delete_key(api_key=key, actor=actor))
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

    def _answered(self, request: HttpRequest, form: type[ConfirmForm]) -> ConfirmForm:
        """Return the form, with the submitted data if the confirmation page was sent."""
        return form(request.POST if "confirmed" in request.POST else None)

    def _ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[ApiKey],
        form: ConfirmForm | LimitsForm,
        action: str,
    ) -> HttpResponse:
        """Show the confirmation page of an action on these keys."""
        versions = KeyVersion.objects.unended().filter(api_key__in=queryset)
        context = {
            **self.admin_site.each_context(request),
            "title": _TITLES[action],
            "opts": self.opts,
            "action": action,
            "rows": queryset.select_related("owner"),
            "versions": versions.select_related("api_key__owner"),
            "form": form,
            "media": self.media + form.media,
            "back": self.place_of(request),
        }
        return TemplateResponse(request, "admin/keys/apikey/confirm.html", context)

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[ApiKey],
        change: Callable[[ApiKey], object],
    ) -> None:
        """Change each key in its own transaction. Show the errors."""
        done = 0
        for api_key in queryset:
            try:
                change(api_key)
                done += 1
            except ValidationError as error:
                fault = f"{api_key}: {' '.join(error.messages)}"
                self.message_user(request, fault, messages.ERROR)
        if done:
            changed = f"Changed {done} key{pluralize(done)}."
            self.message_user(request, changed, messages.SUCCESS)


def _initial(limits: KeyLimits | None) -> dict[str, Any]:
    """Return the present terms of a key, as initial values of the form."""
    if limits is None:
        return {}
    return {name: getattr(limits, name) for name in LimitsForm.Meta.fields}


def _curl(request: HttpRequest, issued: IssuedKey) -> str:
    """Return a first call with a new secret, "" without a network for it."""
    named = issued.api_key.networks.first() or Network.objects.visible().first()
    if named is None:
        return ""
    return snippets(network_url(base_url(request), named), issued.secret)[0].text
