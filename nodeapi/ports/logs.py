"""Logs of blocks."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from jsonrpc.later import Later
from nodeapi.log_filter import LogFilter
from nodeapi.ports.answers import Answer, MaybeAnswer


class Logs(Protocol):
    """Reads logs."""

    def logs_of_block(
        self,
        network_id: int,
        block_hash: bytes,
        wanted: LogFilter,
        *,
        owner: Hashable = None,
    ) -> MaybeAnswer:
        """Return the matching logs of a block as an array."""

    def logs_between(
        self,
        network_id: int,
        first: int,
        last: int,
        wanted: LogFilter,
        *,
        owner: Hashable = None,
    ) -> Later[Answer]:
        """Return the matching logs of canonical blocks as an array, in order.

        Fails with TooManyLogs, LogSearchTimedOut or LogsNotIndexed.
        """

    async def log_range(
        self, network_id: int, first: int | str, last: int | str
    ) -> tuple[int, int]:
        """Return the numbers of the first and the last block of a search for logs.

        first, last: numbers or tags other than `pending`.
        Raises: InvalidParams, TaggedHeaderNotFound.
        """
