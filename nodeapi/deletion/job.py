"""The job that deletes a network's rows, batch by batch, and then the network."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
from django.db.models import Count, Q

from keys.models import ApiKey
from keys.services import disable_key
from networks.models import Network, NetworkDeletion
from nodeapi.chain.database import (
    LOCK_POLL_SECONDS,
    ImportRunning,
    import_lock,
    importer_connection,
)
from nodeapi.deletion.progress import TableProgress, decode, encode
from nodeapi.deletion.tables import all_rows
from outbox.append import begin
from outbox.streams import ACCESS

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

LOCK_TIMEOUT = "5s"
"""Maximum time for which a batch waits for a lock. It is then repeated."""

PASSES = 5
"""Maximum number of times that the tables are read. Rows that arrive late, such as usage
of the last requests, are found by the next pass."""

KEYS_READ = 100
"""Number of keys that are read at once to be disabled."""


class DeletionFailed(RuntimeError):
    """Raised when rows of a network remain after `PASSES`."""


def run_deletion(
    network_id: int,
    stop: threading.Event,
    report: Callable[[list[TableProgress]], None] = lambda tables: None,
) -> bool:
    """Continue a network's deletion until it is finished or `stop` is set.

    report: called with the progress after each batch.

    Half of the time is left to other users of the database. Return whether the network
    is deleted; a deletion that does not exist any more was finished.

    Raises: DeletionFailed, psycopg.Error; a later call continues.
    """
    with importer_connection() as connection:
        while not stop.is_set():
            try:
                with import_lock(connection, network_id):
                    return _Job(connection, network_id, stop, report).run()
            except ImportRunning:
                stop.wait(LOCK_POLL_SECONDS)
    return False


class _Job:
    """A run of the job. The connection holds the network's import lock."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        stop: threading.Event,
        report: Callable[[list[TableProgress]], None],
    ) -> None:
        self._connection = connection
        self._network_id = network_id
        self._stop = stop
        self._report = report

    def run(self) -> bool:
        """Delete the rows, and then the network. Return False if `stop` was set."""
        deletion = NetworkDeletion.objects.filter(network=self._network_id).first()
        if deletion is None:
            return True
        connection = self._connection
        connection.execute(
            "SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT]
        )
        tables = {one.table: one for one in decode(deletion.tables)}
        for rows in all_rows():  # a later version may have more tables
            meta = rows.model._meta
            new = TableProgress(meta.db_table, str(meta.verbose_name_plural))
            tables.setdefault(meta.db_table, new)
        for _ in range(PASSES):
            _disable_single_network_keys(self._network_id, deletion.slug)
            if not self._delete_rows(deletion, tables):
                return False
            if self._delete_network(deletion.pk):
                logger.info("network %s was deleted", deletion.slug)
                return True
            for table in tables.values():
                table.after, table.is_done = None, False
        raise DeletionFailed(f"rows of network {deletion.slug} keep arriving")

    def _delete_rows(
        self, deletion: NetworkDeletion, tables: dict[str, TableProgress]
    ) -> bool:
        for rows in all_rows():
            table = tables[rows.model._meta.db_table]
            if rows.model is ApiKey.networks.through:
                # Again, because the tables before may have taken hours.
                _disable_single_network_keys(self._network_id, deletion.slug)
            while not table.is_done:
                if self._stop.is_set():
                    return False
                started = time.monotonic()
                try:
                    with self._connection.transaction():
                        batch = rows.delete(
                            self._connection, self._network_id, table.after
                        )
                        table.after = batch.after
                        table.is_done = batch.after is None
                        for name, count in batch.deleted.items():
                            tables[name].deleted += count
                        self._store(deletion.pk, tables)
                except (
                    psycopg.errors.LockNotAvailable,
                    psycopg.errors.DeadlockDetected,
                ) as error:
                    logger.info("the batch is repeated: %s", error)
                    self._reload(deletion.pk, tables)
                self._report(list(tables.values()))
                self._stop.wait(time.monotonic() - started)
        return True

    def _store(self, deletion_id: int, tables: dict[str, TableProgress]) -> None:
        """Write the progress, in the transaction of its batch."""
        self._connection.execute(
            "UPDATE networks_networkdeletion SET tables = %s, updated_at = now()"
            " WHERE id = %s",
            (json.dumps(encode(tables.values())), deletion_id),
        )

    def _reload(self, deletion_id: int, tables: dict[str, TableProgress]) -> None:
        """Read the stored progress again after a batch was rolled back."""
        stored = NetworkDeletion.objects.get(pk=deletion_id)
        tables.update({one.table: one for one in decode(stored.tables)})

    def _delete_network(self, deletion_id: int) -> bool:
        """Delete the network's row. Return False if another row refers to it."""
        try:
            with begin(self._connection) as changes:
                # The references are checked at once, because a check at the commit would
                # hold the lock of the stream that all changes of keys append to.
                self._connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
                self._connection.execute(
                    "UPDATE networks_networkdeletion SET network_id = NULL,"
                    " finished_at = now() WHERE id = %s",
                    (deletion_id,),
                )
                self._connection.execute(
                    "DELETE FROM networks_network WHERE id = %s", (self._network_id,)
                )
                changes.append(ACCESS, f"network:{self._network_id}")
        except (
            psycopg.errors.ForeignKeyViolation,
            psycopg.errors.LockNotAvailable,
        ) as error:
            logger.info("the tables are read again: %s", error.diag.message_primary)
            return False
        return True


def _disable_single_network_keys(network_id: int, slug: str) -> None:
    """Disable the keys that are valid only for this network, or others being deleted.

    Without their last network they would be valid for all networks.
    """
    left = Count("networks", filter=Q(networks__deletion=None))
    after = 0
    while True:
        found = list(
            ApiKey.objects.kept()
            .filter(pk__gt=after, networks=network_id)
            .order_by("pk")[:KEYS_READ]
        )
        if not found:
            return
        after = found[-1].pk
        opened = ApiKey.objects.filter(pk__in=[key.pk for key in found])
        only_here = opened.annotate(left=left).filter(left=0)
        reason = f"its only network, {slug}, was deleted"
        for key in only_here.order_by("pk"):
            disable_key(api_key=key, reason=reason)


def network_of(slug: str) -> Network | None:
    """Return the network whose deletion is in progress, None if there is none."""
    found = NetworkDeletion.objects.filter(slug=slug, network__isnull=False)
    deletion = found.select_related("network").first()
    return None if deletion is None else deletion.network
