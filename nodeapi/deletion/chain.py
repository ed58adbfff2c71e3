"""The deletion of a small chain whose network is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeapi.deletion.tables import all_rows
from nodeapi.models import Block
from outbox.append import begin
from outbox.streams import blocks

if TYPE_CHECKING:
    import psycopg


def delete_chain(
    connection: psycopg.Connection[Any], network_id: int, genesis_hash: bytes
) -> None:
    """Delete a network's chain in one transaction, for a chain with another block 0.

    The connection holds the network's import lock. Settings, entitlements and usage are
    kept.
    """
    with begin(connection) as changes:
        for rows in all_rows():
            if rows.model._meta.app_label != Block._meta.app_label:
                continue
            after = rows.delete(connection, network_id, None).after
            while after is not None:
                after = rows.delete(connection, network_id, after).after
        connection.execute(
            "UPDATE networks_network SET genesis_hash = %s, head_number = NULL,"
            " head_hash = NULL, safe_hash = NULL, finalized_hash = NULL WHERE id = %s",
            (genesis_hash, network_id),
        )
        changes.append(blocks(network_id))
