"""Results of native tracers, computed from trace records without execution.

A derivation is a tracer with its options. Its input is a stored transaction: the JSON
object and the packed trace record (`evm.tracers.record`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from evm.frame_errors import REVERTED
from evm.tracers.call import CallConfig, call_json, read_call
from evm.tracers.details import Details
from evm.tracers.flat_call import FlatCallConfig, Place, flat_call_json
from evm.tracers.four_byte import four_byte_json
from evm.tracers.frames import CallFrame
from evm.tracers.prestate import (
    PrestateConfig,
    code_text,
    prestate_json,
    read_prestate,
)
from evm.tracers.record import fill_calls, unpack
from evm.tracers.state_diff import state_diff_json
from evm.tracers.touched import TouchedAccount
from evm.world import EMPTY_CODE_HASH

CALLS, PRESTATE = "calls", "prestate"


@dataclass(frozen=True, slots=True)
class RecordedTransaction:
    """A transaction with its position in a block and its trace record.

    The record's parts are packed; see `evm.tracers.record`. `calls` and `prestate` are
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


class Derivation(Protocol):
    """A tracer with its options, whose results are computed from trace records."""

    @property
    def name(self) -> str:
        """A cache key: the tracer's name and its options. Equal keys mean equal results."""

    @property
    def needs(self) -> frozenset[str]:
        """The parts of the record besides `details` that the derivation reads.

        A subset of `calls` and `prestate`.
        """

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON.

        codes: hash → code, for all of `code_hashes`, if `needs` contains `prestate`.

        Raises: RecordTooLarge; ValueError if the record is damaged.
        """


def call_tree(transaction: RecordedTransaction) -> tuple[CallFrame, Details]:
    """Return a transaction's calls with their logs, and the details."""
    top = read_call(fill_calls(transaction.calls, transaction.document))
    details = Details(unpack(transaction.details))
    details.add_logs(top)
    return top, details


def touched_accounts(transaction: RecordedTransaction) -> list[TouchedAccount]:
    """Return the touched accounts, with their values before and after the transaction."""
    details = Details(unpack(transaction.details))
    details.add_logs(None)
    return details.complete(read_prestate(unpack(transaction.prestate)))


def code_hashes(transaction: RecordedTransaction) -> set[bytes]:
    """Return the hashes of the touched accounts' code, before and after."""
    found: set[bytes] = set()
    for account in touched_accounts(transaction):
        found |= {account.before.code_hash, account.after.code_hash}
    return found - {EMPTY_CODE_HASH}


@dataclass(frozen=True, slots=True)
class CallDerivation:
    """Computes results of callTracer with options."""

    config: CallConfig = field(default_factory=CallConfig)
    needs = frozenset({CALLS})

    @property
    def name(self) -> str:
        """A cache key: the tracer's name and its options."""
        return f"callTracer {self.config}"

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON."""
        top, _ = call_tree(transaction)
        return call_json(top, self.config).encode()


@dataclass(frozen=True, slots=True)
class FlatCallDerivation:
    """Computes results of flatCallTracer."""

    config: FlatCallConfig = field(default_factory=FlatCallConfig)
    needs = frozenset({CALLS})

    @property
    def name(self) -> str:
        """A cache key: the tracer's name and its options."""
        return f"flatCallTracer {self.config}"

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON."""
        top, details = call_tree(transaction)
        place = Place(
            transaction.block_hash,
            transaction.block_number,
            transaction.hash,
            transaction.index,
        )
        return flat_call_json(top, self.config, details.precompiles, place).encode()


@dataclass(frozen=True, slots=True)
class FourByteDerivation:
    """Computes results of 4byteTracer."""

    name = "4byteTracer"
    needs = frozenset({CALLS})

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON."""
        top, details = call_tree(transaction)
        return four_byte_json(top, details.precompiles).encode()


@dataclass(frozen=True, slots=True)
class PrestateDerivation:
    """Computes results of prestateTracer with options."""

    config: PrestateConfig = field(default_factory=PrestateConfig)
    needs = frozenset({PRESTATE})

    @property
    def name(self) -> str:
        """A cache key: the tracer's name and its options."""
        return f"prestateTracer {self.config}"

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON."""
        touched = touched_accounts(transaction)
        return prestate_json(touched, self.config, code_text(codes)).encode()


@dataclass(frozen=True, slots=True)
class NoopDerivation:
    """Computes results of noopTracer, an empty object for each transaction."""

    name = "noopTracer"
    needs: frozenset[str] = frozenset()

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON."""
        return b"{}"


_PARITY = FlatCallConfig(convert_parity_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDerivation:
    """Computes Parity's result of a replayed transaction, without `vmTrace`.

    `{"output":…,"stateDiff":…,"trace":[…],"transactionHash":…,"vmTrace":null}`. Members
    that are not wanted are null or empty; an unwanted `transactionHash` is left out.
    """

    trace: bool = False
    state_diff: bool = False
    transaction_hash: bool = False

    @property
    def name(self) -> str:
        """A cache key: the requested members of the result."""
        return repr(self)

    @property
    def needs(self) -> frozenset[str]:
        """The parts of a record: `prestate` for stateDiff only."""
        return frozenset({CALLS, PRESTATE} if self.state_diff else {CALLS})

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON."""
        top, details = call_tree(transaction)
        output = top.output if top.error in (None, REVERTED) else b""
        trace, diff, ending = "[]", "null", ""
        if self.trace:
            trace = flat_call_json(top, _PARITY, details.precompiles, None)
        if self.state_diff:
            diff = state_diff_json(touched_accounts(transaction), code_text(codes))
        if self.transaction_hash:
            ending = f',"transactionHash":"0x{transaction.hash.hex()}"'
        text = f'{{"output":"0x{output.hex()}","stateDiff":{diff},"trace":{trace}'
        return f'{text}{ending},"vmTrace":null}}'.encode()


@dataclass(frozen=True, slots=True)
class MuxDerivation:
    """Computes results of muxTracer, which combines several tracers."""

    tracers: tuple[tuple[str, Derivation], ...]
    """Name and tracer, in the order of the result."""

    @property
    def name(self) -> str:
        """A cache key: the tracers' names and their options."""
        inner = ", ".join(derivation.name for _, derivation in self.tracers)
        return f"muxTracer [{inner}]"

    @property
    def needs(self) -> frozenset[str]:
        """The parts of the record that at least one of the tracers reads."""
        return frozenset().union(*(derivation.needs for _, derivation in self.tracers))

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        """Return the result as JSON."""
        members = [
            b'"%b":%b' % (name.encode(), derivation.derive(transaction, codes))
            for name, derivation in self.tracers
        ]
        return b"{" + b",".join(members) + b"}"
