"""The page that tells where a key is used, and how."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from keys.addresses import base_url, network_url
from keys.dashboard.access import dashboard_page, opened_networks, own_key
from keys.dashboard.snippets import VARIABLE, snippets
from networks.models import Network


class Address(NamedTuple):
    """A network, and its base addresses: under its path, then under its own names."""

    network: Network
    url: str
    others: list[str]


@dashboard_page
@require_safe
def connect(request: HttpRequest, pk: int) -> HttpResponse:
    """Show base addresses and first calls.

    `?network=slug` in the address chooses the network that is called.
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
