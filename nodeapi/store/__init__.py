"""Reads of blocks, state and traces, from the cache or PostgreSQL.

Look-ups of concurrent requests are merged into one query. Answers that name their block by
its hash are immutable and cached. Answers by number or tag are cached together with the
head under which they were read.

A block's row holds the block object twice: with transaction hashes as it is sent, and with
transaction objects as a compressed document, because that one is long. Each transaction
object also has a row of its own.

Traces are answered from trace records in three ways. Up to 1 MiB, an answer is one query
and is cached. A longer answer has a known length, and is read in groups of 256 KiB as the
client reads; a record longer than that is read in parts with `substring`, which is fast
because the columns have EXTERNAL storage. An answer that a tracer derives from records has
a length that is known at its end only; beyond 1 MiB it is spooled to a file. No database
connection is held while a client reads.

Each column of a record has a checksum. A damaged record is an internal error, or breaks
the connection if the answer has begun; the log names the record.
"""

from __future__ import annotations

from evm.proved_state import Keys, UnknownValues
from jsonrpc.turns import Turns
from networks.directory import Directory
from nodeapi.encoding import BlockReference
from nodeapi.results.spool import SpoolCount
from nodeapi.store.accounts import AccountReads
from nodeapi.store.appearances import AppearanceReads
from nodeapi.store.base import CacheKey, Sources
from nodeapi.store.blocks import BlockReads
from nodeapi.store.changes import ChangeReads
from nodeapi.store.derived import DerivedReads
from nodeapi.store.fees import FeeReads
from nodeapi.store.following import FollowingReads
from nodeapi.store.kept import KeptReads
from nodeapi.store.logs import MAX_LOGS, LogReads
from nodeapi.store.past import PastValues
from nodeapi.store.proofs import ProofReads
from nodeapi.store.states import StateReads, all_known
from postgres.cache import BytesCache
from postgres.connections import Connections

TaskName = tuple[str, bytes, bytes]
"""Task, block hash, and a digest of the arguments. Equal names have equal outcomes."""


class Store(
    BlockReads,
    StateReads,
    AccountReads,
    LogReads,
    ChangeReads,
    DerivedReads,
    AppearanceReads,
    FeeReads,
    FollowingReads,
    KeptReads,
    PastValues,
    ProofReads,
):
    """Reads of blocks, states, transactions and records, with a shared cache.

    Results are complete on a cache hit.

    cache_bytes: memory for answers that name their block by hash; 0: no cache.
    spooled: counts the bytes of spooled files; given if other parts spool files as
        well.
    log_connections: for searches for logs; `connections` if None.
    max_logs: maximum number of logs that such a search returns.
    """

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        *,
        cache_bytes: int,
        spooled: SpoolCount | None = None,
        log_connections: Connections | None = None,
        max_logs: int = MAX_LOGS,
    ) -> None:
        cache = BytesCache[CacheKey](cache_bytes)
        super().__init__(Sources(connections, directory, cache))
        self.spooled = spooled or SpoolCount()
        self.log_connections = log_connections or connections
        self.log_searches = Turns(self.log_connections.size)
        self.max_logs = max_logs

    async def unknown(self, network_id: int, block_hash: bytes, keys: Keys) -> Keys:
        """Return the keys whose values after a stored block are unknown.

        Raises: HeaderForHashNotFound, Unavailable.
        """
        block = BlockReference(hash=block_hash)
        accounts = [
            self.account(network_id, address, block) for address in keys.accounts
        ]
        slots = [
            self.storage_at(network_id, address, slot, block)
            for address, slot in keys.slots
        ]
        try:
            await all_known([*accounts, *slots])
        except UnknownValues as error:
            return error.keys
        return Keys()

    def task_outcome(self, network_id: int, name: TaskName) -> bytes | None:
        """Return the cached outcome of a task, such as a call's return data, or None."""
        return self._cache.get(("task", network_id, name))

    def keep_task_outcome(
        self, network_id: int, name: TaskName, outcome: bytes
    ) -> None:
        """Cache the outcome of a task."""
        self._cache.put(("task", network_id, name), outcome)
