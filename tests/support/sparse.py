"""Networks that start at a checkpoint, made from complete ones."""

from __future__ import annotations

from django.db import connection

from networks.models import Network


def forget_state(slug: str) -> None:
    """Make a network's head its checkpoint, of whose state nothing is known."""
    network = Network.objects.get(slug=slug)
    Network.objects.filter(pk=network.pk).update(checkpoint_number=network.head_number)
    with connection.cursor() as cursor:
        for table in ("accountversion", "storageversion", "trienode"):
            cursor.execute(
                f"DELETE FROM nodeapi_{table} WHERE network_id = %s", [network.pk]
            )
