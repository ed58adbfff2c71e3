"""Closes the pool of database connections when a worker stops."""

from __future__ import annotations

import asyncio
from typing import Any

from django.db import connections

from config.gateway import LazyPart


class DatabasePool(LazyPart):
    """The pool of `config.services.with_pool`, as a part of the application."""

    async def stop(self) -> None:
        """Close all connections of the pool."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        database: Any = connections["default"]
        database.close_pool()
