"""Reads of what a network was set up with."""

from __future__ import annotations

from typing import Any

import orjson

from nodeapi.store.base import Reads
from postgres.statement import INT8, Statement, int8

_CONFIG = Statement(
    "SELECT convert_to((genesis -> 'config')::text, 'UTF8')"
    " FROM networks_network WHERE id = $1",
    [INT8.oid],
)


class ConfigReads(Reads):
    """Answers about the rules of a network."""

    async def genesis_config(self, network_id: int) -> dict[str, Any]:
        """Return the `config` of the network's genesis.json: when its forks are.

        Raises: Unavailable.
        """
        ((config,),) = await self._connections.fetch(_CONFIG, [int8(network_id)])
        found: dict[str, Any] = orjson.loads(config or b"{}")
        return found
