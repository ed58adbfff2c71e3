"""Reads of a network's configuration."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson

from jsonrpc.later import Later
from networks.directory import Directory, NetworkView
from nodeapi.store.base import CacheKey, Reads
from nodeapi.store.head_values import HeadValues
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.statement import INT8, Row, Statement, int8

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig

_CONFIG = Statement(
    "SELECT convert_to((genesis -> 'config')::text, 'UTF8')"
    " FROM networks_network WHERE id = $1",
    [INT8.oid],
)


class ConfigReads(Reads):
    """Reads of networks' fork schedules."""

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        super().__init__(connections, directory, cache)
        self._chain_configs = HeadValues(directory, self._read_chain_config)

    def chain_config(self, network_id: int) -> Later[ChainConfig]:
        """Return a network's fork schedule, which is read again for each new head.

        Fails with Unavailable.
        """
        return self._chain_configs.get(network_id)

    async def _read_chain_config(self, view: NetworkView) -> ChainConfig:
        genesis = {"config": await self.genesis_config(view.id)}
        return await asyncio.to_thread(_parsed, genesis)

    def genesis_config(self, network_id: int) -> Later[dict[str, Any]]:
        """Return the `config` of the network's genesis.json, with the fork schedule.

        Fails with Unavailable.
        """
        rows = self._connections.fetch(_CONFIG, [int8(network_id)])
        return Later.from_future(rows).then(_config)


def _parsed(genesis: dict[str, Any]) -> ChainConfig:
    # Importing it loads py-evm, which takes about a second and 20 MB, once.
    from evm.chain_config import ChainConfig

    return ChainConfig.from_genesis(genesis)


def _config(rows: list[Row]) -> dict[str, Any]:
    ((config,),) = rows
    found: dict[str, Any] = orjson.loads(config or b"{}")
    return found
