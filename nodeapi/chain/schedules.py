"""Fork schedules of public networks: a new version adds the forks that it knows."""

from __future__ import annotations

import sys
from typing import Any

from django.db import transaction

from evm.chain_config import ChainConfig, InvalidChainConfig
from evm.public import PUBLIC_NETWORKS
from networks.models import Network
from networks.services import announce_network
from nodeapi.models import Block


def schedule_later_forks(**options: Any) -> None:
    """Add later forks to the stored networks with a built-in genesis, after `migrate`.

    options: of Django's signal `post_migrate`.
    """
    out = options.get("stdout") or sys.stdout
    public = {bytes(each.genesis_hash): each for each in PUBLIC_NETWORKS.values()}
    stored = Network.objects.filter(genesis_hash__in=list(public))
    for network_id, genesis_hash in stored.values_list("pk", "genesis_hash"):
        config = public[bytes(genesis_hash)].genesis()["config"]
        for sentence in _schedule(network_id, config):
            if options.get("verbosity", 1):
                out.write(f"{sentence}\n")


@transaction.atomic
def _schedule(network_id: int, known: dict[str, Any]) -> list[str]:
    """Add the forks that a network's config lacks, if no stored block is affected.

    Return sentences about them. known: the built-in config.
    """
    # No import moves the head while it is compared.
    network = Network.objects.select_for_update(no_key=True).get(pk=network_id)
    own = network.genesis["config"]
    added = [key for key in known if key.endswith("Time") and key not in own]
    blocks = Block.objects.filter(network=network, hash=network.head_hash)
    head = blocks.only("number", "header").first()
    if not added or head is None:
        return []
    genesis = network.genesis | {"config": with_forks(own, known, added)}
    place, forks = (head.number, head.timestamp), ", ".join(sorted(added))
    try:
        old, new = map(ChainConfig.from_genesis, (network.genesis, genesis))
        if old.until(*place) != new.until(*place):
            raise InvalidChainConfig(f"block {head.number} is after them")
    except InvalidChainConfig as error:
        return [f"{network.slug}: the forks {forks} can't be added: {error}"]
    network.genesis = genesis
    network.save(update_fields=["genesis"])
    announce_network(network)
    return [f"{network.slug}: {key} is {known[key]} now" for key in sorted(added)]


def with_forks(
    config: dict[str, Any], known: dict[str, Any], keys: list[str]
) -> dict[str, Any]:
    """Return a config with forks of another one, and with their blob parameters."""
    blobs = {
        name: parameters
        for name, parameters in known.get("blobSchedule", {}).items()
        if f"{name}Time" in keys
    }
    return {
        **config,
        **{key: known[key] for key in keys},
        "blobSchedule": blobs | (config.get("blobSchedule") or {}),
    }
