"""Closes the pool of database connections when a worker stops."""

from __future__ import annotations

import asyncio
from typing import Any

from django.db import connections


class DatabasePool:
    """The pool of `config.services.with_pool`, as a part of the application."""

    async def start(self) -> None:
        """Open nothing: connections are opened when threads need them."""

    async def stop(self) -> None:
        """Close all connections of the pool."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        database: Any = connections["default"]
        database.close_pool()
