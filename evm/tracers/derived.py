"""Results of native tracers, computed from trace records without execution.

A derivation is a tracer with its options. Its input is a stored transaction: the JSON
object and the packed trace record (`evm.tracers.record`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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

_CALL, _FLAT_CALL, _PRESTATE = CallConfig(), FlatCallConfig(), PrestateConfig()
_PARITY = FlatCallConfig(convert_parity_errors=True)


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


@dataclass(frozen=True, slots=True)
class Derivation:
    """A tracer with its options, whose results are computed from trace records."""

    name: str
    """A cache key: the tracer's name and its options. Equal keys mean equal results."""
    derive: Callable[[RecordedTransaction, Mapping[bytes, bytes]], bytes]
    """Returns the result as JSON, from a transaction and its code by hash.

    The code is that of all `code_hashes`, if `needs` contains `prestate`. Raises:
    RecordTooLarge; ValueError if the record is damaged."""
    needs: frozenset[str] = frozenset({CALLS})
    """The parts of the record besides `details` that the derivation reads: a subset of
    `calls` and `prestate`."""


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


def call_derivation(config: CallConfig = _CALL) -> Derivation:
    """Return the derivation of results of callTracer with options."""

    def derive(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
        top, _ = call_tree(transaction)
        return call_json(top, config).encode()

    return Derivation(f"callTracer {config}", derive)


def flat_call_derivation(config: FlatCallConfig = _FLAT_CALL) -> Derivation:
    """Return the derivation of results of flatCallTracer with options."""

    def derive(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
        top, details = call_tree(transaction)
        place = Place(
            transaction.block_hash,
            transaction.block_number,
            transaction.hash,
            transaction.index,
        )
        return flat_call_json(top, config, details.precompiles, place).encode()

    return Derivation(f"flatCallTracer {config}", derive)


def prestate_derivation(config: PrestateConfig = _PRESTATE) -> Derivation:
    """Return the derivation of results of prestateTracer with options."""

    def derive(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
        touched = touched_accounts(transaction)
        return prestate_json(touched, config, code_text(codes)).encode()

    return Derivation(f"prestateTracer {config}", derive, frozenset({PRESTATE}))


def _four_byte(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
    top, details = call_tree(transaction)
    return four_byte_json(top, details.precompiles).encode()


FOUR_BYTE_DERIVATION = Derivation("4byteTracer", _four_byte)

NOOP_DERIVATION = Derivation("noopTracer", lambda *_: b"{}", frozenset())
"""Its result is an empty object for each transaction."""


def replay_derivation(
    *, trace: bool = False, state_diff: bool = False, transaction_hash: bool = False
) -> Derivation:
    """Return the derivation of Parity's replay of a transaction, without `vmTrace`.

    `{"output":…,"stateDiff":…,"trace":[…],"transactionHash":…,"vmTrace":null}`. Members
    that are not wanted are null or empty; an unwanted `transactionHash` is left out.
    """

    def derive(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
        top, details = call_tree(transaction)
        output = top.output if top.error in (None, REVERTED) else b""
        traces, diff, ending = "[]", "null", ""
        if trace:
            traces = flat_call_json(top, _PARITY, details.precompiles, None)
        if state_diff:
            diff = state_diff_json(touched_accounts(transaction), code_text(codes))
        if transaction_hash:
            ending = f',"transactionHash":"0x{transaction.hash.hex()}"'
        text = f'{{"output":"0x{output.hex()}","stateDiff":{diff},"trace":{traces}'
        return f'{text}{ending},"vmTrace":null}}'.encode()

    return Derivation(
        f"parityReplay {trace} {state_diff} {transaction_hash}",
        derive,
        frozenset({CALLS, PRESTATE} if state_diff else {CALLS}),
    )


def mux_derivation(tracers: Sequence[tuple[str, Derivation]]) -> Derivation:
    """Return the derivation of results of muxTracer.

    tracers: names and derivations, in the order of the result.
    """

    def derive(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
        members = [
            b'"%b":%b' % (name.encode(), tracer.derive(transaction, codes))
            for name, tracer in tracers
        ]
        return b"{" + b",".join(members) + b"}"

    return Derivation(
        f"muxTracer [{', '.join(tracer.name for _, tracer in tracers)}]",
        derive,
        frozenset().union(*(tracer.needs for _, tracer in tracers)),
    )
