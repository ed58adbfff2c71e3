"""Changes of networks. Each is announced to the serving processes when it commits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection, transaction

from networks.directory import CHANNEL
from networks.models import HostName, Network


def announce_network(network: Network) -> None:
    """Tell the serving processes, at the commit, that a network has changed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(network.pk)])


@transaction.atomic
def create_network(
    *,
    slug: str,
    name: str,
    chain_id: int,
    genesis: dict[str, Any],
    genesis_hash: bytes,
) -> Network:
    """Create a network without blocks.

    genesis: geth's genesis.json without the alloc.
    Raises: ValidationError.
    """
    network = Network(
        slug=slug,
        name=name,
        chain_id=chain_id,
        genesis=genesis,
        genesis_hash=genesis_hash,
    )
    network.full_clean()
    network.save()
    announce_network(network)
    return network


@transaction.atomic
def configure_network(
    *,
    network: Network,
    name: str | None = None,
    host_names: Iterable[str] | None = None,
    tracers: Iterable[str] | None = None,
    emit_total_difficulty: bool | None = None,
    upstream_url: str | None = None,
) -> Network:
    """Change what is given and keep what is None.

    host_names: all of the network's names from now on.
    upstream_url: "" for none.
    Raises: ValidationError, also for a host name that another network has.
    """
    if name is not None:
        network.name = name
    if tracers is not None:
        network.tracers = list(dict.fromkeys(tracers))
    if emit_total_difficulty is not None:
        network.emit_total_difficulty = emit_total_difficulty
    if upstream_url is not None:
        network.upstream_url = upstream_url
    network.full_clean()
    # The importer moves the head meanwhile: only these columns are ours to write.
    network.save(
        update_fields=["name", "tracers", "emit_total_difficulty", "upstream_url"]
    )
    if host_names is not None:
        network.host_names.all().delete()
        for host_name in dict.fromkeys(host.lower() for host in host_names):
            row = HostName(network=network, name=host_name)
            row.full_clean()
            row.save()
    announce_network(network)
    return network
