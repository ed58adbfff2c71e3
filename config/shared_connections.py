"""Connections to the database that stay open, for all threads of a serving process.

A new one costs more than most pages' queries: PostgreSQL starts a process for it, which
reads its catalogues again for the first query of each table. Commands have one of their
own and need none of this.
"""

from __future__ import annotations

import asyncio
from typing import Any

from django.db import connections

MOST = 16
"""Pages have 8 (`config.pages`), the wallet's calls 4, late uses of keys 4."""

PATIENCE_SECONDS = 5.0
"""For which somebody waits for one, such as while the database is away."""

IDLE_SECONDS = 60.0
"""After which one that nobody has needed is closed."""


class SharedConnections:
    """Has Django take its connections from a pool, from when this is made.

    Source: https://docs.djangoproject.com/en/5.2/ref/databases/#connection-pool
    """

    def __init__(self) -> None:
        database: dict[str, Any] = connections.settings["default"]
        # One that was lost meanwhile is replaced, not handed out.
        database["CONN_HEALTH_CHECKS"] = True
        database["OPTIONS"]["pool"] = {
            "min_size": 0,
            "max_size": MOST,
            "timeout": PATIENCE_SECONDS,
            "max_idle": IDLE_SECONDS,
        }

    async def start(self) -> None:
        """Open nothing: the first who needs a connection does."""

    async def stop(self) -> None:
        """Close them all."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        database: Any = connections["default"]
        database.close_pool()
