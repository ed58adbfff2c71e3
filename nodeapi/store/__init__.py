"""The read side: everything that is answered, out of PostgreSQL or the cache."""

from __future__ import annotations

from networks.directory import Directory
from nodeapi.store.base import CacheKey
from nodeapi.store.blocks import BlockReads
from nodeapi.store.configs import ConfigReads
from nodeapi.store.derived import DerivedReads
from nodeapi.store.states import StateReads, StateRef
from nodeapi.store.transactions import TransactionReads
from nodeapi.tracing.spool import SpoolCount
from postgres.cache import BytesCache
from postgres.connections import Connections

__all__ = ["StateRef", "Store"]


class Store(BlockReads, StateReads, TransactionReads, DerivedReads, ConfigReads):
    """Reads of blocks, states, transactions and records, with one cache.

    A method returns its answer at once when it is cached, else something to await.
    cache_bytes: memory for answers that name their block by its hash; 0: none.
    spooled: counts what waits in files, where others have some, too.
    """

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        *,
        cache_bytes: int,
        spooled: SpoolCount | None = None,
    ) -> None:
        super().__init__(connections, directory, BytesCache[CacheKey](cache_bytes))
        self._spooled = spooled or SpoolCount()
