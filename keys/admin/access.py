"""The queue of requests for access in the admin."""

from __future__ import annotations

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from keys.accounts.acting import actor_of
from keys.admin.actions import ConfirmForm, ObjectActions
from keys.admin.fields import ExpiryWidget
from keys.admin.lists import ReadOnly
from keys.admin.search import SearchByKey
from keys.audit_sentences import key_label
from keys.models import AccessRequest, AccessStatus
from keys.services import approve_access, decline_access


class DeclineForm(ConfirmForm):
    """Form for the reason of declining a request, which the customer gets by email."""

    answer = forms.CharField(label="Reason", max_length=500, widget=forms.Textarea)


class ApproveForm(DeclineForm):
    """Form for the expiry and a message to the customer."""

    answer = forms.CharField(
        label="Message", max_length=500, required=False, widget=forms.Textarea
    )
    expires_at = forms.SplitDateTimeField(
        label="Expires (UTC)",
        required=False,
        widget=ExpiryWidget,
        help_text="Empty: it does not expire.",
    )


@admin.register(AccessRequest)
class AccessRequestAdmin(SearchByKey, ReadOnly, ObjectActions):
    """Requests for access, which staff with the permission approve and decline."""

    list_display = [
        "requested_at",
        "status",
        "key",
        "network",
        "tracers",
        "reason",
    ]
    list_filter = ["status", "network"]
    list_select_related = ["api_key__owner", "network"]
    fields = [
        *("status", "key_link", "network", "tracers", "reason"),
        *("requested_by", "requested_at"),
        *("decided_by", "decided_at", "expires_at", "answer"),
    ]
    actions = ["approve", "decline"]
    object_actions = {"approve": "Approve", "decline": "Decline"}

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessRequest]:
        found: QuerySet[AccessRequest] = super().get_queryset(request)
        return found.prefetch_related("api_key__versions")

    def applicable_actions(self, obj: AccessRequest) -> set[str]:
        """Return the actions on a request. A decision is final."""
        is_pending = obj.status == AccessStatus.PENDING
        return set(self.object_actions) if is_pending else set()

    @admin.display(description="API key", ordering="api_key")
    def key(self, asked: AccessRequest) -> str:
        return key_label(asked.api_key)

    @admin.display(description="API key")
    def key_link(self, asked: AccessRequest) -> SafeString:
        address = reverse("admin:keys_apikey_change", args=[asked.api_key_id])
        return format_html('<a href="{}">{}</a>', address, key_label(asked.api_key))

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
                "rows": queryset.select_related("api_key__owner", "network"),
                "form": form,
                "media": self.media + form.media,
                "back": self.place_of(request),
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
