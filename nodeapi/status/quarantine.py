"""Releasing quarantined blocks."""

from __future__ import annotations

import logging

from django.db import transaction

from networks.models import Network
from nodeapi.models import QuarantinedBlock

logger = logging.getLogger(__name__)


@transaction.atomic
def release_block(*, network: Network, block_id: int) -> QuarantinedBlock | None:
    """Release a quarantined block of all upstreams that have sent it.

    The follower reads the change within a few seconds. It imports the block again if an
    upstream still reports it.

    block_id: the id of one of the block's rows.

    Returns: the released block, or None if it is not quarantined any more.
    """
    found = QuarantinedBlock.objects.filter(network=network, pk=block_id)
    block = found.select_for_update().first()
    if block is None:
        return None
    QuarantinedBlock.objects.filter(network=network, hash=bytes(block.hash)).delete()
    logger.info(
        "network %s: block %d 0x%s was released from quarantine",
        network.slug,
        block.number,
        bytes(block.hash).hex(),
    )
    return block
