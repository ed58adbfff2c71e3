"""Trace records, and the tracers that read them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from jsonrpc.later import Later
from nodeapi.encoding import MAX_INDEX
from nodeapi.ports.answers import MaybeAnswer

RecordKind = Literal["calls", "prestate"]
"""A record that is a tracer's answer: callTracer's, prestateTracer's."""


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


class Traces(Protocol):
    """Reads trace records, and derives results of tracers from them.

    first, last: indices of the first and the last transaction, both included. last may
    exceed the block's last index.

    Results fail with TraceTooLarge for a transaction whose trace record would have
    exceeded the limit.
    """

    def trace_sizes(
        self, network_id: int, block_hash: bytes, first: int = 0, last: int = MAX_INDEX
    ) -> Later[TraceSizes | None]:
        """Return the number of a block's transactions, and the sizes of their results.

        None if there is no such block.
        """

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

    def cached_derived_trace(
        self,
        network_id: int,
        block_hash: bytes,
        derivation: Derivation,
        index: int | None = None,
    ) -> bytes | None:
        """Return the cached result for a block or for one of its transactions, or None.

        index: the transaction's index, or None for the block.
        """
