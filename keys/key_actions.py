"""What staff do with selected API keys, each after a page that asks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers

from keys.actors import actor_of
from keys.models import ApiKey, KeyVersion
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
from networks.models import Network, Tracer

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _ApiKeyAdmin = admin.ModelAdmin[ApiKey]
else:
    _ApiKeyAdmin = admin.ModelAdmin


_SECONDS = [f"{overlap.total_seconds():.0f}" for overlap in OVERLAPS]


class ConfirmForm(forms.Form):
    """Nothing but the decision."""

    confirmed = forms.BooleanField(widget=forms.HiddenInput, initial=True)


class ReasonForm(ConfirmForm):
    """Why; the key's owner can read it."""

    reason = forms.CharField(max_length=200)


class RollForm(ConfirmForm):
    """How long the old secrets live on."""

    overlap = forms.TypedChoiceField(
        choices=list(zip(_SECONDS, OVERLAP_WORDS, strict=True)),
        coerce=lambda seconds: timedelta(seconds=int(seconds)),
        initial=f"{DEFAULT_OVERLAP.total_seconds():.0f}",
    )


class GrantForm(ConfirmForm):
    """The terms on which tracing is granted."""

    network = forms.ModelChoiceField(Network.objects.all())
    tracers = forms.MultipleChoiceField(
        label="Tracers (none: all)",
        choices=Tracer.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    expires_at = forms.SplitDateTimeField(
        label="Expires (UTC; empty: never)", required=False, widget=AdminSplitDateTime
    )
    note = forms.CharField(max_length=200, required=False)


_TITLES = {
    "disable": "Disable",
    "roll": "Roll one key and show its new secret",
    "revoke": "Revoke all secrets of the selected keys",
    "grant": "Grant tracing on a network",
    "delete_keys": "Delete for ever",
}
"""Of the pages that ask, and of the buttons that lead there."""


class KeyActions(_ApiKeyAdmin):
    """The actions, and who may take them.

    Django asks `has_<name>_permission` for an action's permissions before it offers
    the action, and again when it is taken.
    """

    actions = ["disable", "enable", "roll", "revoke", "grant", "delete_keys"]

    def has_disable_permission(self, request: HttpRequest) -> bool:
        """Return whether someone may disable keys, and enable them again."""
        return request.user.has_perm("keys.disable_apikey")

    def has_grant_permission(self, request: HttpRequest) -> bool:
        """Return whether someone may grant tracing."""
        return request.user.has_perm("keys.grant_entitlement")

    def has_retire_permission(self, request: HttpRequest) -> bool:
        """Return whether someone may delete keys; see `delete_key`."""
        return request.user.has_perm("keys.delete_apikey")

    @admin.action(description=_TITLES["disable"], permissions=["disable"])
    def disable(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Ask for a reason, then disable."""
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
        """Let disabled keys in again."""
        actor = actor_of(request)
        self._each(request, queryset, lambda key: enable_key(api_key=key, actor=actor))

    @admin.action(description=_TITLES["roll"], permissions=["change"])
    def roll(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Ask for the overlap, then roll; for customers who have it done by us."""
        if queryset.count() != 1:
            self.message_user(request, "Choose one key to roll.", messages.ERROR)
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
        """Ask for a reason, then revoke."""
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
        """Ask for the terms, then grant."""
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

    @admin.action(description=_TITLES["delete_keys"], permissions=["retire"])
    def delete_keys(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Ask, then delete."""
        form = self._answered(request, ConfirmForm)
        if not form.is_valid():
            return self._ask(request, queryset, form, "delete_keys")
        actor = actor_of(request)
        self._each(request, queryset, lambda key: delete_key(api_key=key, actor=actor))
        return None

    def show_secret(self, request: HttpRequest, issued: IssuedKey) -> HttpResponse:
        """Show a secret in the answer itself, so that it is kept nowhere."""
        context = {
            **self.admin_site.each_context(request),
            "title": "API key issued",
            "opts": self.opts,
            "issued": issued,
        }
        response = TemplateResponse(request, "admin/keys/apikey/issued.html", context)
        add_never_cache_headers(response)
        return response

    def _answered(self, request: HttpRequest, form: type[ConfirmForm]) -> ConfirmForm:
        """Return the form, filled in if the page that asks has been sent."""
        return form(request.POST if "confirmed" in request.POST else None)

    def _ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[ApiKey],
        form: ConfirmForm,
        action: str,
    ) -> HttpResponse:
        """Show what is about to happen to which keys."""
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
        }
        return TemplateResponse(request, "admin/keys/apikey/confirm.html", context)

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[ApiKey],
        change: Callable[[ApiKey], object],
    ) -> None:
        """Change each key by itself; say which could not be changed, and why."""
        done = 0
        for api_key in queryset:
            try:
                change(api_key)
                done += 1
            except ValidationError as error:
                fault = f"{api_key}: {' '.join(error.messages)}"
                self.message_user(request, fault, messages.ERROR)
        if done:
            self.message_user(request, f"Done: {done}.", messages.SUCCESS)
