"""Networks in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest

from evm.hexadecimal import to_hex
from networks.models import MAX_UPSTREAMS, HostName, Network, Tracer, Upstream
from networks.services import (
    announce_network,
    check_agreement,
    check_upstream_urls,
)
from networks.upstream_forms import UpstreamForm, masked_headers

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _NetworkForm = forms.ModelForm[Network]
    _NetworkAdmin = admin.ModelAdmin[Network]
    _HostNameInline = admin.TabularInline[HostName, Network]
    _UpstreamInline = admin.StackedInline[Upstream, Network]
    _UpstreamFormSet = forms.BaseInlineFormSet[Upstream, Network, UpstreamForm]
else:
    _NetworkForm = forms.ModelForm
    _NetworkAdmin = admin.ModelAdmin
    _HostNameInline = admin.TabularInline
    _UpstreamInline = admin.StackedInline
    _UpstreamFormSet = forms.BaseInlineFormSet


class NetworkForm(_NetworkForm):
    """The form of a network, with a checkbox for each tracer."""

    tracers = forms.MultipleChoiceField(
        choices=Tracer.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=Network._meta.get_field("tracers").help_text,
    )

    class Meta:
        model = Network
        fields = [
            "name",
            "tracers",
            "emit_total_difficulty",
            "agree",
            "keep_side_blocks",
            "keep_proofs",
            "public_explorer",
        ]
        labels = {
            "emit_total_difficulty": "Total difficulty",
            "agree": "Agreement",
            "keep_side_blocks": "Side blocks kept",
            "keep_proofs": "States with proofs kept",
        }


class HostNameInline(_HostNameInline):
    model = HostName
    extra = 1


class UpstreamFormSet(_UpstreamFormSet):
    """All upstreams of a network. Checks that URLs differ and enough are enabled."""

    def clean(self) -> None:
        """Check the upstreams together, as `networks.services` does.

        Raises: ValidationError. The message contains no URL.
        """
        super().clean()
        if any(self.errors):
            return
        kept = [form.instance for form in self.forms if _is_kept(form)]
        check_upstream_urls(upstream.url for upstream in kept)
        enabled = sum(upstream.is_enabled for upstream in kept)
        check_agreement(self.instance.agree, enabled)


class UpstreamInline(_UpstreamInline):
    """A network's upstreams. Only staff who may change them see their URLs."""

    model = Upstream
    form = UpstreamForm
    formset: Any = UpstreamFormSet
    extra = 0
    max_num = MAX_UPSTREAMS

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if self.has_change_permission(request, obj):
            return ["url", "headers", "position", "is_enabled", "note"]
        return ["address", "header_names", "position", "is_enabled", "note"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        if self.has_change_permission(request, obj):
            return []
        return ["address", "header_names"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_add = super().has_add_permission(request, obj)
        # Otherwise the page has no field for the URL.
        return may_add and self.has_change_permission(request, obj)

    @admin.display(description="URL")
    def address(self, upstream: Upstream) -> str:
        return str(upstream)

    @admin.display(description="headers")
    def header_names(self, upstream: Upstream) -> str:
        return masked_headers(upstream.headers) or "-"


@admin.register(Network)
class NetworkAdmin(_NetworkAdmin):
    """Configuration of networks. `add_network` and `import_chain` create them."""

    form = NetworkForm
    inlines = [HostNameInline, UpstreamInline]
    list_display = ["slug", "name", "chain_id", "head_number"]
    search_fields = ["slug", "name"]
    show_full_result_count = False
    fields = [
        "slug",
        "name",
        "state",
        "chain_id",
        "tracers",
        "emit_total_difficulty",
        "agree",
        "keep_side_blocks",
        "keep_proofs",
        "public_explorer",
        "head_number",
        "head",
        "safe",
        "finalized",
    ]
    readonly_fields = [
        "slug",
        "state",
        "chain_id",
        "head_number",
        "head",
        "safe",
        "finalized",
    ]

    @admin.display(description="head hash")
    def head(self, network: Network) -> str:
        return _hex(network.head_hash)

    @admin.display(description="safe block")
    def safe(self, network: Network) -> str:
        return _hex(network.safe_hash)

    @admin.display(description="finalized block")
    def finalized(self, network: Network) -> str:
        return _hex(network.finalized_hash)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    def save_model(
        self,
        request: HttpRequest,
        obj: Network,
        form: ModelForm[Network],
        change: bool,
    ) -> None:
        # Only the form's fields, because the importer changes the head concurrently.
        obj.save(update_fields=NetworkForm.Meta.fields)

    def save_related(
        self,
        request: HttpRequest,
        form: ModelForm[Network],
        formsets: list[Any],
        change: bool,
    ) -> None:
        super().save_related(request, form, formsets, change)
        announce_network(form.instance)


def _is_kept(form: UpstreamForm) -> bool:
    """Return whether a form describes an upstream, and is not marked for deletion."""
    cleaned = getattr(form, "cleaned_data", None) or {}
    return "url" in cleaned and not cleaned.get("DELETE")


def _hex(value: bytes | memoryview | None) -> str:
    return "-" if value is None else to_hex(value)
