"""Networks in the admin: what staff may change of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest

from networks.models import HostName, Network, Tracer
from networks.services import announce_network

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _NetworkForm = forms.ModelForm[Network]
    _NetworkAdmin = admin.ModelAdmin[Network]
    _HostNameInline = admin.TabularInline[HostName, Network]
else:
    _NetworkForm = forms.ModelForm
    _NetworkAdmin = admin.ModelAdmin
    _HostNameInline = admin.TabularInline


class NetworkForm(_NetworkForm):
    """A network, with a tick box for each tracer."""

    tracers = forms.MultipleChoiceField(
        choices=Tracer.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=Network._meta.get_field("tracers").help_text,
    )

    class Meta:
        model = Network
        fields = ["name", "tracers", "emit_total_difficulty", "upstream_url"]


class HostNameInline(_HostNameInline):
    model = HostName
    extra = 1


@admin.register(Network)
class NetworkAdmin(_NetworkAdmin):
    """Networks come into being by an import; here they are configured."""

    form = NetworkForm
    inlines = [HostNameInline]
    list_display = ["slug", "name", "chain_id", "head_number"]
    search_fields = ["slug", "name"]
    show_full_result_count = False
    fields = [
        "slug",
        "name",
        "chain_id",
        "tracers",
        "emit_total_difficulty",
        "upstream_url",
        "head_number",
        "head",
        "safe",
        "finalized",
    ]
    readonly_fields = ["slug", "chain_id", "head_number", "head", "safe", "finalized"]

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
        # The importer moves the head meanwhile: only what was edited is written.
        obj.save(update_fields=NetworkForm.Meta.fields)

    def save_related(
        self,
        request: HttpRequest,
        form: ModelForm[Network],
        formsets: list[forms.BaseInlineFormSet[HostName, Network, ModelForm[HostName]]],
        change: bool,
    ) -> None:
        super().save_related(request, form, formsets, change)
        announce_network(form.instance)


def _hex(value: bytes | memoryview | None) -> str:
    return "-" if value is None else "0x" + bytes(value).hex()
