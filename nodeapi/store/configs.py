"""Reads of a network's configuration."""

from __future__ import annotations

from typing import Any

import orjson

from jsonrpc.later import Later
from nodeapi.store.base import Reads
from postgres.statement import INT8, Row, Statement, int8

_CONFIG = Statement(
    "SELECT convert_to((genesis -> 'config')::text, 'UTF8')"
    " FROM networks_network WHERE id = $1",
    [INT8.oid],
)


class ConfigReads(Reads):
    """Reads of networks' fork schedules."""

    def genesis_config(self, network_id: int) -> Later[dict[str, Any]]:
        """Return the `config` of the network's genesis.json, with the fork schedule.

        Fails with Unavailable.
        """
        rows = self._connections.fetch(_CONFIG, [int8(network_id)])
        return Later.from_future(rows).then(_config)


def _config(rows: list[Row]) -> dict[str, Any]:
    ((config,),) = rows
    found: dict[str, Any] = orjson.loads(config or b"{}")
    return found
