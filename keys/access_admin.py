"""The queue of requests for access in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from keys.actors import actor_of
from keys.admin_search import SearchByKey
from keys.models import AccessRequest
from keys.read_only_admin import ReadOnly
from keys.services import approve_access, decline_access

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _AccessRequestAdmin = admin.ModelAdmin[AccessRequest]
else:
    _AccessRequestAdmin = admin.ModelAdmin


class DeclineForm(forms.Form):
    """The reason for declining a request. The customer receives it by mail."""

    confirmed = forms.BooleanField(widget=forms.HiddenInput, initial=True)
    answer = forms.CharField(max_length=500, widget=forms.Textarea)


class ApproveForm(DeclineForm):
    """Form for the expiry and a message to the customer."""

    answer = forms.CharField(max_length=500, required=False, widget=forms.Textarea)
    expires_at = forms.SplitDateTimeField(
        label="Expires (UTC; empty: never)", required=False, widget=AdminSplitDateTime
    )


@admin.register(AccessRequest)
class AccessRequestAdmin(SearchByKey, ReadOnly, _AccessRequestAdmin):
    """Requests for access. Staff with the permission decide them by admin actions."""

    list_display = [
        "requested_at",
        "status",
        "api_key",
        "requested_by",
        "network",
        "tracers",
        "reason",
    ]
    list_filter = ["status", "network"]
    list_select_related = ["api_key", "network", "requested_by"]
    actions = ["approve", "decline"]

    def has_grant_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may decide on requests for access."""
        return request.user.has_perm("keys.grant_entitlement")

    @admin.action(description="Approve", permissions=["grant"])
    def approve(
        self, request: HttpRequest, queryset: QuerySet[AccessRequest]
    ) -> HttpResponse | None:
        """Show a form for the expiry. When it is submitted, grant the requests."""
        return self._decide(request, queryset, ApproveForm, "approve")

    @admin.action(description="Decline", permissions=["grant"])
    def decline(
        self, request: HttpRequest, queryset: QuerySet[AccessRequest]
    ) -> HttpResponse | None:
        """Show a form for the reason. When it is submitted, decline the requests."""
        return self._decide(request, queryset, DeclineForm, "decline")

    def _decide(
        self,
        request: HttpRequest,
        queryset: QuerySet[AccessRequest],
        form_class: type[DeclineForm],
        action: str,
    ) -> HttpResponse | None:
        form = form_class(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            context = {
                **self.admin_site.each_context(request),
                "title": action.capitalize(),
                "opts": self.opts,
                "action": action,
                "rows": queryset,
                "form": form,
                "media": self.media + form.media,
            }
            page = "admin/keys/accessrequest/decide.html"
            return TemplateResponse(request, page, context)
        terms = {k: v for k, v in form.cleaned_data.items() if k != "confirmed"}
        decide = approve_access if action == "approve" else decline_access
        for asked in queryset:
            try:
                decide(request=asked, actor=actor_of(request), **terms)
                self.message_user(request, f"{asked}: {action}d.", messages.SUCCESS)
            except ValidationError as error:
                fault = f"{asked}: {' '.join(error.messages)}"
                self.message_user(request, fault, messages.ERROR)
        return None
