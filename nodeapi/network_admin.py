"""Networks in the admin: configuration, size of the trace records, and status."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from networks.admin import NetworkAdmin
from networks.models import Network
from nodeapi.explore.reorganisations import recent_reorganisations
from nodeapi.record_sizes import newest_record_sizes
from nodeapi.status.charts import import_charts
from nodeapi.status.facts import network_status
from nodeapi.status.quarantine import release_block

admin.site.unregister(Network)


@admin.register(Network)
class RecordedNetworkAdmin(NetworkAdmin):
    """Admin of networks with the size of their trace records and their status."""

    list_display = [*NetworkAdmin.list_display, "status_link"]
    fields = [*NetworkAdmin.fields, "records"]
    readonly_fields = [*NetworkAdmin.readonly_fields, "records"]
    change_form_template = "admin/networks/network/change_form.html"

    @admin.display(description="records of transactions")
    def records(self, network: Network) -> str:
        return str(newest_record_sizes(network))

    @admin.display(description="status")
    def status_link(self, network: Network) -> SafeString:
        return format_html(
            '<a href="{}">Status<span class="visually-hidden"> of {}</span></a>',
            _status_path(network),
            network.slug,
        )

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
            messages.warning(request, "The block is not quarantined any more.")
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
