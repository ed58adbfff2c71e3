"""`backfill_appearances`: index the addresses of blocks that an earlier version imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeapi.chain.appearances import AppearanceRows
from nodeapi.management.backfilling import BackfillCommand
from nodeapi.models import AppearanceBackfill

if TYPE_CHECKING:
    import psycopg


class Command(BackfillCommand):
    help = (
        "Index the addresses in call frames of blocks that were imported before "
        "trace_filter existed. The newest blocks come first. The service and "
        "imports can run at the same time. After an interruption, run it again."
    )
    remaining = AppearanceBackfill
    content = "the addresses in all blocks"

    def index_blocks(
        self, connection: psycopg.Connection[Any], network_id: int
    ) -> int | None:
        """Index the addresses of some blocks."""
        return AppearanceRows(connection, network_id).backfill()
