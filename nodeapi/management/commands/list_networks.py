"""`manage.py list_networks`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from networks.models import Network, all_tracers
from nodeapi.status.following import following

_TITLES = (
    *("slug", "name", "chain id", "head", "hosts", "tracers"),
    *("upstreams", "following", "state"),
)


class Command(BaseCommand):
    help = "List all networks."

    def handle(self, *args: Any, **options: Any) -> None:
        rows: list[tuple[str, ...]] = [_TITLES]
        networks = Network.objects.prefetch_related("host_names", "upstreams")
        rows += [_row(network) for network in networks]
        if len(rows) == 1:
            self.stderr.write(
                "No networks yet: add_network and import_chain create them."
            )
            return
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (c.ljust(w) for c, w in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())


def _row(network: Network) -> tuple[str, ...]:
    offered = ",".join(network.tracers) or "-"
    return (
        network.slug,
        network.name,
        str(network.chain_id),
        "-" if network.head_number is None else str(network.head_number),
        ",".join(host.name for host in network.host_names.all()) or "-",
        "all" if set(network.tracers) == set(all_tracers()) else offered,
        str(len(network.upstreams.all())),
        following(network),
        network.state_text,
    )
