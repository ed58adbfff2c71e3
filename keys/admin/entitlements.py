"""Entitlements of a key, on the key's page in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from keys.models import ApiKey, Entitlement
from keys.services import Actor, grant_entitlement, withdraw_entitlement
from networks.models import Network, Tracer

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _EntitlementForm = forms.ModelForm[Entitlement]
    _EntitlementInline = admin.TabularInline[Entitlement, ApiKey]
    _EntitlementFormSet = forms.BaseInlineFormSet[Entitlement, ApiKey, _EntitlementForm]
else:
    _EntitlementForm = forms.ModelForm
    _EntitlementInline = admin.TabularInline
    _EntitlementFormSet = forms.BaseInlineFormSet


class EntitlementForm(_EntitlementForm):
    """The terms of an entitlement, with a checkbox for each tracer.

    Capability and network of an existing row can't be changed.
    """

    tracers = forms.MultipleChoiceField(
        label="Tracers",
        choices=Tracer.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=Entitlement._meta.get_field("tracers").help_text,
    )

    class Meta:
        model = Entitlement
        fields = ["network", "capability", "tracers", "expires_at", "note"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.fields["network"].disabled = True
            self.fields["capability"].disabled = True
            self._offer_tracers(self.instance)

    def _offer_tracers(self, entitlement: Entitlement) -> None:
        """Remove the tracers that the network does not offer. Granted tracers stay."""
        known = {*entitlement.network.tracers, *entitlement.tracers}
        field = self.fields["tracers"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [choice for choice in Tracer.choices if choice[0] in known]

    def clean(self) -> dict[str, Any]:
        """Reject a new expiry in the past. An unchanged expiry may be in the past."""
        cleaned = super().clean() or {}
        expires_at = cleaned.get("expires_at")
        if self.has_changed() and expires_at and expires_at <= timezone.now():
            self.add_error("expires_at", "The expiry is in the past.")
        return cleaned


class TracingFilter(admin.SimpleListFilter):
    """Filter keys by the networks that they may trace now."""

    title = "tracing"
    parameter_name = "tracing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the networks as pairs of slug and name."""
        return [(slug, slug) for slug in Network.objects.values_list("slug", flat=True)]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> QuerySet[ApiKey]:
        """Return the keys that may trace on the selected network."""
        if self.value() is None:
            return queryset
        granted = Entitlement.objects.live().filter(network__slug=self.value())
        return queryset.filter(pk__in=granted.values("api_key"))


class EntitlementInline(_EntitlementInline):
    model = Entitlement
    form = EntitlementForm
    fk_name = "api_key"
    extra = 0
    fields = [*EntitlementForm.Meta.fields, "granted_by", "granted_at"]
    readonly_fields = ["granted_by", "granted_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entitlement]:
        return super().get_queryset(request).select_related("network", "granted_by")

    def has_add_permission(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> bool:
        return request.user.has_perm("keys.grant_entitlement")

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return request.user.has_perm("keys.grant_entitlement")

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return request.user.has_perm("keys.grant_entitlement")


def save_entitlements(formset: _EntitlementFormSet, *, actor: Actor) -> list[str]:
    """Grant and withdraw the changed entitlements. Return error messages."""
    faults = []
    for entitlement in formset.save(commit=False):
        try:
            grant_entitlement(
                api_key=entitlement.api_key,
                network=entitlement.network,
                capability=entitlement.capability,
                tracers=entitlement.tracers,
                expires_at=entitlement.expires_at,
                note=entitlement.note,
                actor=actor,
            )
        except ValidationError as error:
            faults.append(f"{entitlement}: {' '.join(error.messages)}")
    for entitlement in formset.deleted_objects:
        try:
            withdraw_entitlement(entitlement=entitlement, actor=actor)
        except ValidationError as error:
            faults.append(f"{entitlement}: {' '.join(error.messages)}")
    return faults
