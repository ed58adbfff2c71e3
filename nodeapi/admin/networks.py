"""Networks in the admin: configuration, size of the trace records, status, deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from keys.accounts.acting import actor_of
from keys.admin.actions import ConfirmForm, ObjectActions
from keys.admin.lists import ReadOnly
from networks.admin import NetworkAdmin
from networks.models import Network, NetworkDeletion, NetworkState
from networks.services import change_state
from nodeapi.admin.new_network_form import NewNetworkForm
from nodeapi.deletion.progress import decode
from nodeapi.deletion.requests import (
    reason_against,
    request_deletion,
    single_network_keys,
    tables_of,
)
from nodeapi.status.charts import import_charts
from nodeapi.status.facts import (
    network_status,
    newest_record_sizes,
    progress,
    release_block,
)
from nodeapi.status.reorganisations import recent_reorganisations
from nodeapi.status.troubles import percent_of

admin.site.unregister(Network)


class DeletionForm(ConfirmForm):
    """Confirmation of a deletion: the user types the network's slug."""

    typed = forms.CharField(max_length=50)

    def __init__(self, slug: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._slug = slug
        self.fields["typed"].label = f"Type {slug} to delete the network"

    def clean_typed(self) -> str:
        """Return the slug. Raises: ValidationError for another text."""
        typed: str = self.cleaned_data["typed"]
        if typed != self._slug:
            raise ValidationError(f"This is not the slug {self._slug}.")
        return typed


@admin.register(Network)
class RecordedNetworkAdmin(ObjectActions, NetworkAdmin):
    """Admin of networks with the size of their trace records, state and status."""

    list_display = [*NetworkAdmin.list_display, "state_text", "status_link"]
    list_filter = ["state", "is_preparing"]
    actions = ["show", "hide", "retire", "delete_network"]
    object_actions = {
        "show": "Show",
        "hide": "Hide",
        "retire": "Retire",
        "delete_network": "Delete",
    }
    fields = [*NetworkAdmin.fields, "records"]
    readonly_fields = [*NetworkAdmin.readonly_fields, "records"]
    change_form_template = "admin/networks/network/change_form.html"

    def applicable_actions(self, obj: Network) -> set[str]:
        """Return the actions that make sense in the state of a network."""
        if hasattr(obj, "deletion"):
            return set()
        states = {
            NetworkState.VISIBLE: {"hide", "retire"},
            NetworkState.HIDDEN: {"show", "retire"},
            NetworkState.RETIRED: {"show", "hide", "delete_network"},
        }
        found = states[NetworkState(obj.state)]
        return found | {"show"} if obj.is_preparing else found

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may delete networks."""
        return request.user.has_perm("networks.delete_network")

    @admin.action(description="Show to customers", permissions=["change"])
    def show(
        self, request: HttpRequest, queryset: QuerySet[Network]
    ) -> HttpResponse | None:
        """Ask for confirmation, and make the network visible."""
        return self._change_state(request, queryset, "show", NetworkState.VISIBLE)

    @admin.action(description="Hide from customers", permissions=["change"])
    def hide(
        self, request: HttpRequest, queryset: QuerySet[Network]
    ) -> HttpResponse | None:
        """Ask for confirmation, and hide the network."""
        return self._change_state(request, queryset, "hide", NetworkState.HIDDEN)

    @admin.action(description="Retire", permissions=["change"])
    def retire(
        self, request: HttpRequest, queryset: QuerySet[Network]
    ) -> HttpResponse | None:
        """Ask for confirmation, and retire the network."""
        return self._change_state(request, queryset, "retire", NetworkState.RETIRED)

    @admin.action(description="Delete permanently", permissions=["erase"])
    def delete_network(
        self, request: HttpRequest, queryset: QuerySet[Network]
    ) -> HttpResponse | None:
        """Show the rows to be deleted, and start the deletion when it is confirmed."""
        network = self._only(request, queryset)
        if network is None:
            return None
        posted = request.POST if "confirmed" in request.POST else None
        form = DeletionForm(network.slug, posted)
        if not form.is_valid():
            keys, is_complete = single_network_keys(network)
            tables = [one for one in tables_of(network) if one.about]
            return self._ask(
                request,
                network,
                form,
                "delete_network",
                reason=reason_against(network),
                tables=tables,
                single_network_keys=keys,
                is_complete=is_complete,
            )
        try:
            deletion = request_deletion(
                network, requested_by=str(actor_of(request).user)
            )
        except ValidationError as error:
            self.message_user(request, " ".join(error.messages), messages.ERROR)
            return None
        self.log_change(request, network, "Requested the deletion.")
        page = reverse("admin:networks_networkdeletion_change", args=[deletion.pk])
        return HttpResponseRedirect(page)

    def _change_state(
        self,
        request: HttpRequest,
        queryset: QuerySet[Network],
        action: str,
        state: NetworkState,
    ) -> HttpResponse | None:
        network = self._only(request, queryset)
        if network is None:
            return None
        form = ConfirmForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._ask(request, network, form, action)
        try:
            change_state(network=network, state=state)
        except ValidationError as error:
            self.message_user(request, " ".join(error.messages), messages.ERROR)
            return None
        self.log_change(request, network, f"The network is {state.label}.")
        self.message_user(
            request, f"{network.name} is {state.label} now.", messages.SUCCESS
        )
        return None

    def _only(
        self, request: HttpRequest, queryset: QuerySet[Network]
    ) -> Network | None:
        """Return the selected network, or None and a message if it is not one."""
        found = list(queryset[:2])
        if len(found) == 1:
            return found[0]
        self.message_user(request, "Select exactly one network.", messages.ERROR)
        return None

    def _ask(
        self,
        request: HttpRequest,
        network: Network,
        form: ConfirmForm,
        action: str,
        **facts: Any,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"{self.object_actions[action]} {network.slug}",
            "opts": self.opts,
            "action": action,
            "rows": [network],
            "network": network,
            "form": form,
            "media": self.media + form.media,
            "back": self.place_of(request),
            **facts,
        }
        return TemplateResponse(request, "admin/networks/network/state.html", context)

    @admin.display(description="state", ordering="state")
    def state_text(self, network: Network) -> str:
        return ": ".join(filter(None, (network.state_text, progress(network))))

    @admin.display(description="size of the trace records")
    def records(self, network: Network) -> str:
        return str(newest_record_sizes(network))

    @admin.display(description="status")
    def status_link(self, network: Network) -> SafeString:
        return format_html(
            '<a href="{}">Status<span class="visually-hidden"> of {}</span></a>',
            _status_path(network),
            network.slug,
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("networks.add_network")

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form of a new network, and add it with block 0 and upstreams."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = NewNetworkForm(request.POST or None, request.FILES or None)
        added = form.save() if form.is_valid() else None
        if added is not None:
            network = added.network
            for warning in added.warnings:
                self.message_user(request, warning, messages.WARNING)
            self.log_addition(request, network, "Added.")
            self.message_user(request, f"{network.name} was added.", messages.SUCCESS)
            page = reverse("admin:networks_network_change", args=[network.pk])
            return HttpResponseRedirect(page)
        context = {
            **self.admin_site.each_context(request),
            "title": "Add network",
            "opts": self.opts,
            "form": form,
        }
        return TemplateResponse(request, "admin/networks/network/add.html", context)

    def get_urls(self) -> list[URLPattern]:
        """Add the status page, and the form that releases a quarantined block."""
        view = self.admin_site.admin_view
        return [
            path(
                "<int:network_id>/status/",
                view(require_safe(self.status_view)),
                name="networks_network_status",
            ),
            path(
                "<int:network_id>/status/release/",
                view(require_POST(self.release_view)),
                name="networks_network_release",
            ),
            *super().get_urls(),
        ]

    def status_view(self, request: HttpRequest, network_id: int) -> HttpResponse:
        """Show a network's status. With `?live`, the charts are omitted."""
        network = self._network(network_id)
        if not self.has_view_permission(request, network):
            raise PermissionDenied
        now = timezone.now()
        status = network_status(network, now)
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Status of {network.name}",
            "network": network,
            "status": status,
            "plots": [] if "live" in request.GET else import_charts(network, now),
            "reorganisations": recent_reorganisations(network, status.tags),
            "may_release": self.has_change_permission(request, network),
            "now": int(now.timestamp()),
        }
        return TemplateResponse(request, "admin/networks/network/status.html", context)

    def release_view(self, request: HttpRequest, network_id: int) -> HttpResponse:
        """Release a quarantined block, and log it."""
        network = self._network(network_id)
        if not self.has_change_permission(request, network):
            raise PermissionDenied
        number = request.POST.get("block", "")
        if not number.isdecimal() or len(number) > 18:
            raise Http404
        block = release_block(network=network, block_id=int(number))
        if block is None:
            messages.warning(request, "The block is no longer quarantined.")
        else:
            words = f"Released the quarantined block {block}."
            self.log_change(request, network, words)
            messages.success(request, words)
        return HttpResponseRedirect(_status_path(network))

    def _network(self, network_id: int) -> Network:
        network = Network.objects.filter(pk=network_id).first()
        if network is None:
            raise Http404
        return network


def _status_path(network: Network) -> str:
    return reverse("admin:networks_network_status", args=[network.pk])


if TYPE_CHECKING:  # the class is generic for the type checker alone
    _DeletionAdmin = admin.ModelAdmin[NetworkDeletion]
else:
    _DeletionAdmin = admin.ModelAdmin


@admin.register(NetworkDeletion)
class NetworkDeletionAdmin(ReadOnly, _DeletionAdmin):
    """The deletions of networks, finished or not."""

    list_display = ["slug", "name", "state", "requested_by", "requested_at"]
    search_fields = ["slug", "name"]
    fields = [
        *("slug", "name", "chain_id", "requested_by", "requested_at"),
        *("state", "updated_at", "finished_at", "progress"),
    ]

    @admin.display(description="state")
    def state(self, deletion: NetworkDeletion) -> str:
        if deletion.finished_at is not None:
            return "finished"
        if deletion.updated_at is None:
            return "waiting for manage.py follow"
        return f"deleting, {percent_of(deletion)} %"

    @admin.display(description="tables")
    def progress(self, deletion: NetworkDeletion) -> SafeString:
        shown = [one for one in decode(deletion.tables) if one.about or one.deleted]
        context: dict[str, Any] = {"tables": shown, "has_begun": True}
        return render_to_string("admin/networks/network/tables.html", context)
