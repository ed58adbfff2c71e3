"""Interfaces of the parts that the endpoint and the methods use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from evm.changes import AccountValue
from jsonrpc.errors import RpcError
from jsonrpc.later import Later
from jsonrpc.stream import Stream
from keys.grants import Grant
from keys.limiter.gcra import Limits
from keys.metering import Use
from keys.unknown_keys import UnknownKeys
from networks.directory import NetworkView
from nodeapi.encoding import MAX_INDEX, BlockReference
from nodeapi.log_filter import LogFilter, LogSelection
from nodeapi.pending import PendingBlock
from nodeapi.tracing.answers import TaskAnswer
from nodeapi.tracing.jobs import TaskJob, TraceJob

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig
    from evm.headers import Header

Document = Later[bytes | None]
"""JSON; None if there is no such block or transaction."""

RecordKind = Literal["calls", "prestate"]
"""A record that is a tracer's answer: callTracer's, prestateTracer's."""

MAX_CHANGED_BLOCKS = 1000
"""Maximum number of added blocks that one `changes_since` reads."""

MAX_SLOTS = 1024
"""Most slots of one `storage_values`; geth's limit for eth_getStorageValues."""


class Grants(Protocol):
    """Authenticates API keys; see `keys.grants`."""

    def resolve(self, key: str, client: str | None = None) -> Later[Grant]:
        """Return the grant of a key. Fails with an RpcError.

        client: the IP address that sent the key.
        """


class Directory(Protocol):
    """The networks; see `networks.directory`."""

    def by_slug(self, slug: str) -> NetworkView | None:
        """Return the network that a base address names."""

    def by_host(self, host: str) -> NetworkView | None:
        """Return the network of a Host header, otherwise the default one."""

    def retired(self, slug: str, host: str) -> str:
        """Return the slug of the retired network that a request is for, or ""."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a transaction in the canonical chain."""

    block_hash: bytes
    block_number: int
    index: int


@dataclass(frozen=True, slots=True)
class StateRef:
    """The state after a block that is stored."""

    network_id: int
    block_hash: bytes


@dataclass(frozen=True, slots=True)
class BlockAppearances:
    """A canonical block in whose call frames an account appears."""

    number: int
    block_hash: bytes
    indexes: list[int]
    """The transactions with these frames, in ascending order."""


@dataclass(frozen=True, slots=True)
class HeadFees:
    """Fees in wei per gas, as of the head. None before the fork that introduced them."""

    base_fee: int | None
    next_base_fee: int | None
    """Of the block after the head."""
    blob_fee: int | None


@dataclass(frozen=True, slots=True)
class KeptData:
    """The oldest blocks with certain data, by number.

    oldest_logs: from it on, all logs are indexed.
    oldest_proof: from it on, eth_getProof works.
    proof_blocks: number of blocks below the head for which former trie nodes are kept;
        None: there is no such limit, because none or all are kept.
    """

    oldest_logs: int
    oldest_proof: int
    proof_blocks: int | None


@dataclass(frozen=True, slots=True)
class RecordedTransaction:
    """A transaction with its position in a block and its trace record.

    The record's parts are packed as in `evm.tracers.record`. `calls` and `prestate` are
    empty unless they were requested.
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
    """Sizes of a block's trace results."""

    transactions: int
    """Number of the block's transactions."""
    calls: int
    """Bytes of callTracer's results for the requested transactions."""
    prestate: int
    """Bytes of prestateTracer's results for the requested transactions."""
    largest: int
    """Size in bytes of the longest result for a single transaction, of either tracer.
    """


BlockId = tuple[int, bytes]
"""Number and hash of a block."""


@dataclass(frozen=True, slots=True)
class BlockChanges:
    """How the chain has changed since a block was its head.

    fork: the newest block of both chains.
    removed, added: blocks above it, in ascending order.
    """

    fork: BlockId
    removed: list[BlockId]
    added: list[BlockId]

    @property
    def newest(self) -> BlockId:
        """The newest block of the chain that is known from these changes."""
        return self.added[-1] if self.added else self.fork


class Derivation(Protocol):
    """Computes a tracer's results from trace records; see `evm.tracers`."""

    @property
    def name(self) -> str:
        """A key of the tracer and its options. Equal keys mean equal results."""

    @property
    def needs(self) -> frozenset[str]:
        """The parts of the record besides `details` that the derivation reads.

        A subset of `calls` and `prestate`.
        """

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON.

        codes: hash → code, for the placeholders of `prestate`, if it is needed.
        """


Answer = bytes | Stream
"""JSON. A long result is a stream."""

MaybeAnswer = Later[Answer | None]
"""None if there is no such block or transaction."""


TaskName = tuple[str, bytes, bytes]
"""Task, block hash, and a digest of the arguments. Equal names have equal outcomes."""


class Records(Protocol):
    """Reads trace records, receipts and transactions; see `nodeapi.store.records`.

    Blocks that are named by hash may be side blocks. first, last: indices of the first
    and the last transaction, both included. last may exceed the block's last index.

    Results are complete on a cache hit. They fail with Unavailable while the database
    is unavailable; TraceTooLarge for a transaction whose trace record would have
    exceeded the limit; ServiceUnavailable for a long result while too many bytes are
    spooled for other readers.
    """

    def canonical_hash(
        self, network_id: int, number_or_tag: int | str
    ) -> Later[bytes | None]:
        """Return the hash of the canonical block with a number or a tag."""

    def trace_sizes(
        self, network_id: int, block_hash: bytes, first: int = 0, last: int = MAX_INDEX
    ) -> Later[TraceSizes | None]:
        """Return the number of a block's transactions, and the sizes of their results.

        None if there is no such block.
        """

    def cached_derived_trace(
        self,
        network_id: int,
        block_hash: bytes,
        derivation: Derivation,
        index: int | None = None,
    ) -> bytes | None:
        """Return the cached result for a block or for one of its transactions, or None.

        index: of the transaction, or None for the block.
        """

    def find_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Later[Place | None]:
        """Return the place of a transaction on the canonical chain."""

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
        """Return the result of a default tracer for one transaction."""

    def derived_block_trace(
        self,
        network_id: int,
        block_hash: bytes,
        derivation: Derivation,
        first: int = 0,
        last: int = MAX_INDEX,
        *,
        owner: Hashable = None,
    ) -> MaybeAnswer:
        """Return `[{"txHash":"0x…","result":…},…]` of a tracer that reads records.

        owner: the account that a long result counts for until it has been read.
        """

    def derived_transaction_trace(
        self,
        network_id: int,
        block_hash: bytes,
        index: int,
        derivation: Derivation,
        *,
        owner: Hashable = None,
    ) -> MaybeAnswer:
        """Return one transaction's result of a tracer that reads records.

        owner: the account that a long result counts for until it has been read.
        """

    def transaction_by_hash(self, network_id: int, transaction_hash: bytes) -> Document:
        """Return the transaction object of a canonical block's transaction."""

    def receipt(self, network_id: int, transaction_hash: bytes) -> MaybeAnswer:
        """Return the receipt of a canonical block's transaction."""

    def block_receipts(
        self, network_id: int, block_hash: bytes, *, owner: Hashable = None
    ) -> MaybeAnswer:
        """Return all receipts of a block as an array.

        owner: the account that a long result counts for until it has been read.
        """

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

    async def changes_since(
        self, network_id: int, block_hash: bytes, limit: int = MAX_CHANGED_BLOCKS
    ) -> BlockChanges | None:
        """Return the changes of the chain since a block was the head, as of one moment.

        limit: maximum number of added blocks.

        Returns: None if the block is not stored any more.
        """

    async def log_range(
        self, network_id: int, first: int | str, last: int | str
    ) -> tuple[int, int]:
        """Return the numbers of the first and the last block of a search for logs.

        first, last: numbers or tags other than `pending`.
        Raises: InvalidParams, TaggedHeaderNotFound.
        """

    def raw_block(self, network_id: int, block_hash: bytes) -> Later[bytes | None]:
        """Return a block's RLP."""

    def raw_receipts(
        self, network_id: int, block_hash: bytes, *, owner: Hashable = None
    ) -> MaybeAnswer:
        """Return all receipts of a block as EIP-2718 encodes them, as an array.

        owner: the account that a long result counts for until it has been read.
        """

    def raw_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Later[bytes | None]:
        """Return a canonical block's transaction as EIP-2718 encodes it."""

    def raw_transaction_at(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Later[bytes | None]:
        """Return the transaction at an index of a block as EIP-2718 encodes it."""


class Store(Records, Protocol):
    """Reads blocks, state and trace records; see `nodeapi.store`."""

    def head_number(self, network_id: int) -> Later[int]:
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
    ) -> Later[bytes]:
        """Return the 32 bytes of a slot after a block."""

    def storage_values(
        self,
        network_id: int,
        slots: Sequence[tuple[bytes, int]],
        block: BlockReference,
    ) -> Later[list[bytes]]:
        """Return the values of many slots after the same block."""

    def account(
        self, network_id: int, address: bytes, block: BlockReference
    ) -> Later[AccountValue | None]:
        """Return an account after a block, or None if it does not exist.

        Without storage, the storage root is the root of the empty trie.
        """

    def code(
        self, network_id: int, address: bytes, block: BlockReference
    ) -> Later[bytes]:
        """Return the code of an account after a block, empty if it has none."""

    def resolve_state(self, network_id: int, block: BlockReference) -> Later[StateRef]:
        """Return the state after the block that a block parameter names.

        Fails with HeaderNotFound, HeaderForHashNotFound, NotCanonical or
        TaggedBlockNotFound.
        """

    def proof(
        self,
        network_id: int,
        block_hash: bytes,
        address: bytes,
        names: Sequence[str],
    ) -> Later[bytes | None]:
        """Return the result of eth_getProof, None if it takes long to compute.

        names: of the slots' keys, see `nodeapi.proofs.requests.key_names`.
        """

    def appearances_before(
        self, network_id: int, address: bytes, number: int, limit: int
    ) -> Later[list[BlockAppearances]]:
        """Return the newest blocks below a number in which an account appears."""

    def appearances_after(
        self, network_id: int, address: bytes, number: int, limit: int
    ) -> Later[list[BlockAppearances]]:
        """Return the oldest blocks above a number in which an account appears."""

    def contract_creation(self, network_id: int, address: bytes) -> Later[Place | None]:
        """Return the newest transaction that created a contract."""

    def sent_transaction(
        self, network_id: int, sender: bytes, nonce: int
    ) -> Later[bytes | None]:
        """Return the hash of the canonical transaction with a sender and nonce."""

    def head(self, network_id: int) -> Later[NetworkView]:
        """Return a network with its current head."""

    def header(self, network_id: int, block_hash: bytes) -> Later[Header | None]:
        """Return the header of a block, canonical or not, or None if it is unknown."""

    def suggested_tip(self, network_id: int) -> Later[int]:
        """Return a tip, in wei per gas, with which transactions are soon included."""

    def head_fees(self, network_id: int) -> Later[HeadFees]:
        """Return the fees of the head and of the block after it."""

    async def fee_history(
        self, view: NetworkView, first: int, last: int, percentiles: Sequence[float]
    ) -> bytes | None:
        """Return the result of eth_feeHistory for canonical blocks, as JSON.

        first, last: numbers of existing blocks.
        percentiles: of the gas, in ascending order. If empty, rewards are omitted.
        None if the blocks have been removed since.
        """

    def chain_config(self, network_id: int) -> Later[ChainConfig]:
        """Return a network's fork schedule."""

    async def kept_data(self, network_id: int) -> KeptData:
        """Return from which blocks on a network has logs and proofs."""

    def syncing(self, network_id: int) -> Later[bytes]:
        """Return geth's object while a network is behind its upstreams, else `false`."""

    def task_outcome(self, network_id: int, name: TaskName) -> bytes | None:
        """Return the cached outcome of a task, or None."""

    def keep_task_outcome(
        self, network_id: int, name: TaskName, outcome: bytes
    ) -> None:
        """Cache the outcome of a task."""

    def genesis_config(self, network_id: int) -> Later[Mapping[str, Any]]:
        """Return the `config` of a network's genesis.json, which schedules its forks."""


class TransactionPools(Protocol):
    """Reads the pools of all networks; see `nodeapi.mempool.pools`."""

    async def status(self, network: NetworkView, payer: int) -> bytes:
        """Return the numbers of pending and queued transactions, as JSON."""

    async def content(self, network: NetworkView, payer: int) -> bytes:
        """Return the transaction objects by address and nonce, as JSON."""

    async def content_from(
        self, network: NetworkView, address: bytes, payer: int
    ) -> bytes:
        """Return the transaction objects of a sender by nonce, as JSON."""

    async def inspect(self, network: NetworkView, payer: int) -> bytes:
        """Return a line of text for each transaction by address and nonce, as JSON."""


class Relay(Protocol):
    """Sends transactions, and reads what is pending; see `nodeapi.relay`."""

    @property
    def pools(self) -> TransactionPools:
        """The transaction pools: upstreams', or local ones."""

    async def send(
        self,
        network: NetworkView,
        raw: bytes,
        payer: int,
        allow: Callable[[bytes], None],
    ) -> bytes:
        """Check a transaction, send it to every upstream, and return its hash.

        Without upstreams, it is added to the local pool.

        allow: called with the recipient, empty for a creation. Its error ends the call.
        """

    async def wait_for_receipt(
        self, network: NetworkView, transaction_hash: bytes, payer: int, seconds: float
    ) -> Answer | None:
        """Return the receipt of a transaction as soon as a block contains it.

        None if no block contains it after a time.
        """

    async def pending_block(
        self, network: NetworkView, payer: int
    ) -> PendingBlock | None:
        """Return the pending block of an upstream, None if it has none."""

    async def pending_nonce(
        self, network: NetworkView, address: bytes, payer: int
    ) -> int:
        """Return the next nonce of an account after its pending transactions."""

    async def pending_transaction(
        self, network: NetworkView, transaction_hash: bytes, payer: int
    ) -> bytes | None:
        """Return a transaction object of an upstream or the local pool, or None."""

    async def pending_raw_transaction(
        self, network: NetworkView, transaction_hash: bytes, payer: int
    ) -> bytes | None:
        """Return an encoded transaction of an upstream or the local pool, or None."""


class Tracing(Protocol):
    """Executes blocks again for tracers, and calls; see `nodeapi.tracing`.

    `nodeapi.tracing.pool.TracePool` implements it with worker processes. Another
    implementation, such as a task queue, has to follow this contract.
    """

    async def trace(
        self,
        job: TraceJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
    ) -> Stream:
        """Return the complete result of a job.

        key: its number of concurrent traces is limited.
        owner: the key's account, whose unread bytes are limited. If None, the key's are.
        request: calls of the same request count as one trace. If None, the job counts as
            a separate request.

        Raises: RpcError, see `nodeapi.tracing.errors`.
        """

    def run(
        self,
        job: TaskJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
    ) -> Later[TaskAnswer]:
        """Return the result of a task, a stream if it is long.

        Equal tasks share one execution. Keys take turns.

        key, owner, request: as in `trace`. Short tasks are limited in number for the key
            only.

        Fails with an RpcError, see `nodeapi.tracing.errors`.
        """

    async def close(self) -> None:
        """Cancel all jobs."""


class Limiter(Protocol):
    """Charges keys; see `keys.limiter`."""

    def charge(
        self, api_key_id: int, limits: Limits | None, credits: int
    ) -> Later[None]:
        """Charge the credits that a request costs.

        Fails with an error of `keys.limiter.errors`.
        """

    def refund(self, api_key_id: int, limits: Limits | None, credits: int) -> None:
        """Refund credits that were overcharged."""


class Meter(Protocol):
    """Counts calls; see `keys.metering`."""

    def book(self, use: Use, credits: int, microseconds: int, size: int) -> None:
        """Count a call. size: bytes of its response."""

    def fail(
        self, api_key_id: int, network_id: int, method: str, error: RpcError
    ) -> None:
        """Record a call that was answered with an error, for the key's owner."""


class Notifier(Protocol):
    """Opens and ends the subscriptions of a socket; see `nodeapi.sockets.peer`."""

    async def subscribe(self, kind: str, options: Any) -> str:
        """Open a subscription and return its id. It begins after the call's response.

        kind: the first argument of eth_subscribe. options: the second one, or None.
        Raises: NoSuchSubscription, InvalidParams, TooManySubscriptions, Unavailable.
        """

    def unsubscribe(self, subscription: str) -> bool:
        """End a subscription. Return False if the socket has none with this id."""


class Filters(Protocol):
    """The filters that clients poll; see `nodeapi.filters`.

    key_id: the API key, to which a filter belongs together with its network.
    """

    async def add_logs(
        self, network: NetworkView, key_id: int, criteria: dict[str, Any]
    ) -> str:
        """Create a filter of new logs, and return its id. criteria: JSON."""

    async def add_blocks(self, network: NetworkView, key_id: int) -> str:
        """Create a filter of new blocks, and return its id."""

    async def add_pending(
        self, network: NetworkView, key_id: int, *, is_full: bool
    ) -> str:
        """Create a filter of new pending transactions, and return its id."""

    async def criteria(
        self, network: NetworkView, key_id: int, name: str
    ) -> dict[str, Any]:
        """Return the criteria of a filter of logs. Raises: FilterNotFound."""

    async def remove(self, network: NetworkView, key_id: int, name: str) -> bool:
        """Remove a filter. Return whether it existed."""

    async def poll(
        self,
        network: NetworkView,
        key_id: int,
        name: str,
        select: Callable[[dict[str, Any]], LogSelection],
        owner: Hashable,
    ) -> Answer:
        """Return an array of the events since the last poll, and advance the filter.

        A long array ends before the newest block. The next poll continues there.

        select: returns which logs a filter reports, from its criteria. Its errors are
            raised.

        Raises: FilterNotFound; Unavailable; LogSearchTimedOut.
        """


class UsesAfterRevocation(Protocol):
    """Records uses of revoked secrets; see `keys.use_after_revocation`."""

    def note(self, version_id: int, ip: str | None) -> None:
        """Start recording a use. Does not block."""


class Service(Protocol):
    """The parts of the node, which start and stop with the server."""

    @property
    def grants(self) -> Grants:
        """Authenticates keys."""

    @property
    def directory(self) -> Directory:
        """The networks, by slug and by host name."""

    @property
    def store(self) -> Store:
        """Reads blocks, state and trace records."""

    @property
    def tracing(self) -> Tracing:
        """Executes blocks again for traces on demand."""

    @property
    def relay(self) -> Relay | None:
        """Asks upstreams, or None to ask none."""

    @property
    def filters(self) -> Filters | None:
        """The filters that clients poll, or None to have none."""

    @property
    def limiter(self) -> Limiter | None:
        """Charges keys, or None to charge nothing."""

    @property
    def meter(self) -> Meter | None:
        """Counts calls, or None to count nothing."""

    @property
    def unknown_keys(self) -> UnknownKeys:
        """The rate limit for requests with unknown keys."""

    @property
    def uses_after_revocation(self) -> UsesAfterRevocation:
        """Records uses of revoked secrets."""

    async def start(self) -> None:
        """Open the connections that requests need."""

    async def stop(self) -> None:
        """Close the connections."""
