"""What the HTTP edge and the methods want of the parts below them."""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from jsonrpc.stream import Stream
from keys.grants import Grant
from keys.limiter.gcra import Limits
from keys.metering import Use
from keys.strangers import Strangers
from networks.directory import NetworkView
from nodeapi.encoding import MAX_INDEX, BlockReference
from nodeapi.tracing.jobs import TraceJob

Document = bytes | None | Awaitable[bytes | None]
"""JSON, None when there is no such thing; at once when it is cached."""

RecordKind = Literal["calls", "prestate"]
"""A record that is a tracer's answer: callTracer's, prestateTracer's."""

MAX_SLOTS = 1024
"""Most slots of one `storage_values`; geth's limit for eth_getStorageValues."""


class Grants(Protocol):
    """Lets keys in; see `keys.grants`."""

    def resolve(self, key: str) -> Grant | Awaitable[Grant]:
        """Return what a key opens, or raise an RpcError, now or when awaited."""

    def remembers(self, key: str) -> bool:
        """Return whether a key has been looked up and is remembered."""


class Directory(Protocol):
    """Knows the networks; see `networks.directory`."""

    def by_slug(self, slug: str) -> NetworkView | None:
        """Return the network that a base address names."""

    def by_host(self, host: str) -> NetworkView | None:
        """Return the network of a Host header, else the default one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a transaction stands on the canonical chain."""

    block_hash: bytes
    block_number: int
    index: int


@dataclass(frozen=True, slots=True)
class RecordedTransaction:
    """A transaction at its place in a block, with what its execution left.

    The records are as `nodeapi.tracers.record` packs them; `calls` and `prestate` are
    there if they were asked for, else empty.
    """

    block_hash: bytes
    block_number: int
    index: int
    hash: bytes
    document: bytes
    """The transaction object as JSON."""
    calls: bytes
    prestate: bytes
    details: bytes


@dataclass(frozen=True, slots=True)
class TraceSizes:
    """How much there is to trace."""

    transactions: int
    """Of the whole block."""
    calls: int
    """Bytes of callTracer's answers, of the transactions that were asked about."""
    prestate: int
    """The same of prestateTracer's."""
    largest: int
    """Bytes of the longest single answer of either."""


class Derivation(Protocol):
    """Makes a tracer's answers out of records; see `nodeapi.tracers`."""

    @property
    def name(self) -> str:
        """The tracer and its options, the same for the same answers."""

    @property
    def needs(self) -> frozenset[str]:
        """Which records it reads besides the details: `calls`, `prestate`."""

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the answer as JSON.

        codes: what `prestate` leaves out, by hash, if that is needed.
        """


Answer = bytes | Stream
"""JSON; a stream when it is long."""

MaybeAnswer = Answer | None | Awaitable[Answer | None]
"""None: there is no such block or transaction. At once when it is cached."""


class Records(Protocol):
    """Reads what executions left; see `nodeapi.store.records`.

    What is asked for by block hash may be a side block's. first, last: a slice of the
    block's transactions, both included; it ends where the block ends.
    Everything raises, now or when awaited, Unavailable; TraceTooLarge for a
    transaction of which more would have had to be recorded than the limit;
    ServiceUnavailable for a long answer while too much waits for other readers.
    """

    def canonical_hash(
        self, network_id: int, number_or_tag: int | str
    ) -> bytes | Awaitable[bytes | None] | None:
        """Return the hash of the canonical block with a number or a tag."""

    def trace_sizes(
        self, network_id: int, block_hash: bytes, first: int = 0, last: int = MAX_INDEX
    ) -> Awaitable[TraceSizes | None]:
        """Return how many transactions a block has, and how long their answers are."""

    def find_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Place | Awaitable[Place | None]:
        """Return where a transaction stands on the canonical chain."""

    def block_trace(
        self,
        network_id: int,
        block_hash: bytes,
        kind: RecordKind,
        first: int = 0,
        last: int = MAX_INDEX,
    ) -> MaybeAnswer:
        """Return `[{"txHash":"0x…","result":…},…]` of a default tracer, as stored."""

    def transaction_trace(
        self, network_id: int, block_hash: bytes, index: int, kind: RecordKind
    ) -> MaybeAnswer:
        """Return a transaction's answer of a default tracer, as stored."""

    def derived_block_trace(
        self,
        network_id: int,
        block_hash: bytes,
        derivation: Derivation,
        first: int = 0,
        last: int = MAX_INDEX,
    ) -> MaybeAnswer:
        """Return `[{"txHash":"0x…","result":…},…]` of a tracer that reads records."""

    def derived_transaction_trace(
        self, network_id: int, block_hash: bytes, index: int, derivation: Derivation
    ) -> MaybeAnswer:
        """Return a transaction's answer of a tracer that reads records."""

    def transaction_by_hash(self, network_id: int, transaction_hash: bytes) -> Document:
        """Return the transaction object of a canonical block's transaction."""

    def receipt(self, network_id: int, transaction_hash: bytes) -> MaybeAnswer:
        """Return the receipt of a canonical block's transaction."""

    def block_receipts(self, network_id: int, block_hash: bytes) -> MaybeAnswer:
        """Return all receipts of a block as an array."""

    def raw_block(self, network_id: int, block_hash: bytes) -> Awaitable[bytes | None]:
        """Return a block's RLP."""

    def raw_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Awaitable[bytes | None]:
        """Return a canonical block's transaction as EIP-2718 encodes it."""


class Store(Records, Protocol):
    """Reads blocks, state and records; see `nodeapi.store`.

    Raises now or when awaited.
    """

    def head_number(self, network_id: int) -> int | Awaitable[int]:
        """Return the number of the newest block."""

    def block_by_hash(
        self,
        network_id: int,
        block_hash: bytes,
        full: bool,
        with_total_difficulty: bool,
    ) -> Document:
        """Return a block, canonical or not."""

    def block_by_number(
        self,
        network_id: int,
        number_or_tag: int | str,
        full: bool,
        with_total_difficulty: bool,
    ) -> Document:
        """Return the canonical block with a number or a tag."""

    def transaction_by_block_hash_and_index(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Document:
        """Return the transaction at a place in a block."""

    def storage_at(
        self, network_id: int, address: bytes, slot: int, block: BlockReference
    ) -> bytes | Awaitable[bytes]:
        """Return the 32 bytes of a slot after a block."""

    def storage_values(
        self,
        network_id: int,
        slots: Sequence[tuple[bytes, int]],
        block: BlockReference,
    ) -> Awaitable[list[bytes]]:
        """Return the values of many slots after the same block."""

    def resolve_state(
        self, network_id: int, block: BlockReference
    ) -> Awaitable[object]:
        """Return the state that a block parameter names, or raise what it lacks."""

    def genesis_config(self, network_id: int) -> Awaitable[Mapping[str, Any]]:
        """Return the `config` of a network's genesis.json: when its forks are."""


class Tracing(Protocol):
    """Executes blocks again for tracers that want to; see `nodeapi.tracing`.

    `nodeapi.tracing.pool.TracePool` does it in processes of its own. Whatever takes its
    place (a task queue, say) keeps the promises that stand here.
    """

    async def trace(self, job: TraceJob, owner: Hashable) -> Stream:
        """Return the answer to a job, all of which is there by then.

        owner: who is counted for it, and may have only so many at once.
        Raises: RpcError, see `nodeapi.tracing.errors`.
        """

    async def close(self) -> None:
        """End what is going on."""


class Limiter(Protocol):
    """Charges keys; see `keys.limiter`."""

    def charge(
        self, api_key_id: int, limits: Limits | None, credits: int
    ) -> Awaitable[None] | None:
        """Take what a request costs; at once, if there is enough at hand.

        Raises, when awaited: see `keys.limiter.errors`.
        """

    def refund(self, api_key_id: int, limits: Limits | None, credits: int) -> None:
        """Give back what was charged too much."""


class Meter(Protocol):
    """Counts calls; see `keys.metering`."""

    def book(self, use: Use, credits: int, microseconds: int, size: int) -> None:
        """Count a call; size: bytes of its answer."""

    def refuse(
        self, api_key_id: int, network_id: int, method: str, reason: str
    ) -> None:
        """Note why a call was refused."""


class LateUses(Protocol):
    """Puts attempts with revoked secrets on record; see `keys.late_use`."""

    def note(self, version_id: int, ip: str | None) -> None:
        """See to it that an attempt is on record; returns at once."""


class Service(Protocol):
    """The parts together, to be opened and closed with the server."""

    @property
    def grants(self) -> Grants:
        """The keys."""

    @property
    def directory(self) -> Directory:
        """The networks."""

    @property
    def store(self) -> Store:
        """The blocks, the state and the records."""

    @property
    def tracing(self) -> Tracing:
        """What executes blocks again."""

    @property
    def limiter(self) -> Limiter | None:
        """What keys are charged by."""

    @property
    def meter(self) -> Meter | None:
        """What their calls are counted by."""

    @property
    def strangers(self) -> Strangers:
        """The addresses that come with keys nobody has."""

    @property
    def late_uses(self) -> LateUses:
        """The revoked secrets that are still tried."""

    async def start(self) -> None:
        """Open what answering needs."""

    async def stop(self) -> None:
        """Close it again."""
