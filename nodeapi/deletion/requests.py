"""The preview of a network's deletion, and its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import transaction
from psycopg.sql import SQL

from networks.models import Network, NetworkDeletion, NetworkState
from networks.services import announce_network
from nodeapi.chain.database import ImportRunning, import_lock, importer_connection
from nodeapi.deletion.progress import TableProgress, encode
from nodeapi.deletion.tables import Rows, all_rows
from outbox.append import append
from outbox.streams import blocks

if TYPE_CHECKING:
    import psycopg

COUNTED_BYTES = 16_000_000
"""Tables up to this size are counted. The rows of larger tables are estimated, because
counting them would take longer than a page may."""

KEYS_EXAMINED = 10_000
"""Maximum number of keys that are examined for the number of those to be disabled."""


def tables_of(network: Network) -> list[TableProgress]:
    """Return the tables with rows of a network, before any was deleted."""
    with importer_connection() as connection:
        found = [_measured(connection, rows, network.pk) for rows in all_rows()]
    return found


def single_network_keys(network: Network) -> tuple[int, bool]:
    """Return the number of keys that are valid only for this network.

    Other networks that are being deleted do not count.

    Returns: the number, and whether all keys of the network were examined.
    """
    with importer_connection() as connection:
        row = connection.execute(
            "SELECT count(*) FILTER (WHERE NOT EXISTS ("
            " SELECT 1 FROM keys_apikey_networks AS other"
            " WHERE other.apikey_id = one.apikey_id AND other.network_id <> %s"
            " AND NOT EXISTS (SELECT 1 FROM networks_networkdeletion AS deletion"
            " WHERE deletion.network_id = other.network_id))),"
            " count(*) FROM (SELECT apikey_id FROM keys_apikey_networks"
            " WHERE network_id = %s LIMIT %s) AS one",
            (network.pk, network.pk, KEYS_EXAMINED),
        ).fetchone()
    found, examined = row or (0, 0)
    return int(found), int(examined) < KEYS_EXAMINED


def reason_against(network: Network) -> str:
    """Return a sentence why a network can't be deleted now, "" if it can."""
    if NetworkDeletion.objects.filter(network=network).exists():
        return f"{network.slug} is already being deleted."
    if network.state != NetworkState.RETIRED:
        return "The network is still served. Retire it first."
    try:
        with importer_connection() as connection, import_lock(connection, network.pk):
            return ""
    except ImportRunning:
        return (
            "A follower or an import is still writing to the network. Try again when it "
            "has ended. A follower ends a few seconds after the network is retired."
        )


def request_deletion(network: Network, *, requested_by: str = "") -> NetworkDeletion:
    """Start the deletion of a network, which can't be undone.

    requested_by: the email address of the user; "" for the command line.

    The network has no head from now on, so that no page reads a block that is deleted.

    Raises: ValidationError with `reason_against` the deletion.
    """
    if reason := reason_against(network):
        raise ValidationError(reason)
    tables = tables_of(network)
    with transaction.atomic():
        locked = Network.objects.select_for_update().get(pk=network.pk)
        if locked.state != NetworkState.RETIRED or hasattr(locked, "deletion"):
            raise ValidationError("The network has just been changed. Try again.")
        deletion = NetworkDeletion.objects.create(
            network=locked,
            slug=locked.slug,
            name=locked.name,
            chain_id=locked.chain_id,
            requested_by=requested_by,
            tables=encode(tables),
        )
        Network.objects.filter(pk=locked.pk).update(
            head_number=None, head_hash=None, safe_hash=None, finalized_hash=None
        )
        announce_network(locked)
        append(blocks(locked.pk))
    return deletion


def _measured(
    connection: psycopg.Connection[Any], rows: Rows, network_id: int
) -> TableProgress:
    """Count or estimate the rows of a network in a table."""
    meta = rows.model._meta
    values = {"network": network_id}
    (size,) = connection.execute(
        "SELECT pg_relation_size(to_regclass(%s))", (meta.db_table,)
    ).fetchone() or (0,)
    is_exact = size <= COUNTED_BYTES
    if is_exact:
        statement = SQL("SELECT count(*) FROM ({}) AS counted").format(rows.counting)
        (about,) = connection.execute(statement, values).fetchone() or (0,)
    else:
        statement = SQL("EXPLAIN (FORMAT JSON) {}").format(rows.counting)
        (plan,) = connection.execute(statement, values).fetchone() or ([],)
        about = plan[0]["Plan"]["Plan Rows"] if plan else 0
    label = str(meta.verbose_name_plural)
    return TableProgress(
        table=meta.db_table,
        label=label,
        about=int(about),
        is_exact=is_exact,
        clears=rows.clears,
    )
