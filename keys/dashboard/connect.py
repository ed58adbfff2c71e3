"""The page that shows how to connect with a key."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from keys.dashboard.access import dashboard_page, opened_networks, own_key
from keys.dashboard.snippets import VARIABLE, snippets
from keys.site import base_url, network_url
from networks.models import Network


class Address(NamedTuple):
    """A network's base URLs: the one with its path, then those with its own hosts."""

    network: Network
    url: str
    others: list[str]


@dashboard_page
@require_safe
def connect(request: HttpRequest, pk: int) -> HttpResponse:
    """Show base URLs and example calls.

    The query parameter `network` (a slug) selects the network of the examples.
    """
    key = own_key(request, pk)
    base = base_url(request)
    scheme = base.partition(":")[0]
    addresses = [
        Address(
            network,
            network_url(base, network),
            [f"{scheme}://{host.name}/v3" for host in network.host_names.all()],
        )
        for network in opened_networks(key)
    ]
    wanted = request.GET.get("network")
    chosen = next((a for a in addresses if a.network.slug == wanted), None)
    chosen = chosen or next(iter(addresses), None)
    context = {
        "key": key,
        "addresses": addresses,
        "chosen": chosen,
        "snippets": [] if chosen is None else snippets(chosen.url),
        "variable": VARIABLE,
    }
    return render(request, "dashboard/connect.html", context)
