"""`backfill_logs`: index the logs of blocks that an earlier version imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeapi.chain.logs import backfill_logs
from nodeapi.management.backfilling import BackfillCommand
from nodeapi.models import LogBackfill

if TYPE_CHECKING:
    import psycopg


class Command(BackfillCommand):
    help = (
        "Index the logs of blocks that were imported before eth_getLogs existed. "
        "The newest blocks come first. The service and imports can run at the same time. "
        "After an interruption, run it again."
    )
    remaining = LogBackfill
    content = "the logs of all blocks"

    def index_blocks(
        self, connection: psycopg.Connection[Any], network_id: int
    ) -> int | None:
        """Index the logs of some blocks."""
        return backfill_logs(connection, network_id)
