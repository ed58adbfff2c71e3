"""flatCallTracer: the calls as a list, in Parity's format.

Source: go-ethereum, eth/tracers/native/call_flat.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass

from evm.frame_errors import OUT_OF_GAS, REVERTED, UNPAID_CODE
from evm.tracers.frames import CREATIONS, CallFrame
from evm.tracers.parties import visible_calls

_PARITY_ERRORS = {
    UNPAID_CODE: "Out of gas",
    OUT_OF_GAS: "Out of gas",
    "gas uint64 overflow": "Out of gas",
    "max code size exceeded": "Out of gas",
    "invalid jump destination": "Bad jump destination",
    REVERTED: "Reverted",
    "return data out of bounds": "Out of bounds",
    "stack limit reached 1024 (1023)": "Out of stack",
    "precompiled failed": "Built-in failed",
    "invalid input length": "Built-in failed",
}
_PARITY_PREFIXES = {
    "out of gas:": "Out of gas",
    "invalid opcode:": "Bad instruction",
    "stack underflow": "Stack underflow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatCallConfig:
    """The tracer's `tracerConfig`."""

    convert_parity_errors: bool = False
    include_precompiles: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The position of the traced transaction: its block and index.

    The hashes are empty for a call that is in no block.
    """

    block_hash: bytes
    block_number: int
    transaction_hash: bytes
    index: int


def flat_call_json(
    top: CallFrame,
    config: FlatCallConfig,
    precompiles: Collection[bytes],
    place: Place | None,
) -> str:
    """Return the tracer's result as JSON.

    precompiles: addresses of the fork's precompiled contracts.
    place: None to leave out block and transaction, as Parity's replays do.
    """
    entries = flat_entries(top, config, precompiles, place)
    return f"[{','.join(entries)}]"


def flat_entries(
    top: CallFrame,
    config: FlatCallConfig,
    precompiles: Collection[bytes],
    place: Place | None,
    is_wanted: Callable[[CallFrame], bool] | None = None,
) -> list[str]:
    """Return the entries of the tracer's result, each as JSON.

    precompiles, place: see `flat_call_json`.
    is_wanted: chooses call frames. None: all are wanted.
    """
    entries = []
    hidden = () if config.include_precompiles else precompiles
    block = ending = ""
    if place is not None:
        ending = (
            f',"transactionHash":{_or_null(place.transaction_hash)}'
            f',"transactionPosition":{place.index}'
        )
        block = (
            f',"blockHash":{_or_null(place.block_hash)}'
            f',"blockNumber":{place.block_number}'
        )
    waiting: list[tuple[CallFrame, str]] = [(top, "")]
    while waiting:
        frame, path = waiting.pop()
        calls = visible_calls(frame, hidden)
        if is_wanted is None or is_wanted(frame):
            entries.append(
                f"{{{_action(frame)}{block}{_ending(frame, config)}"
                f',"subtraces":{len(calls)},"traceAddress":[{path}]{ending}'
                f',"type":"{_kind(frame)}"}}'
            )
        separator = "," if path else ""
        numbered = enumerate(calls)
        waiting += [(c, f"{path}{separator}{n}") for n, c in numbered][::-1]
    return entries


def _or_null(hash32: bytes) -> str:
    return f'"0x{hash32.hex()}"' if hash32 else "null"


def _kind(frame: CallFrame) -> str:
    if frame.type == "SELFDESTRUCT":
        return "suicide"
    return "create" if frame.type in CREATIONS else "call"


def _action(frame: CallFrame) -> str:
    sender, to = f"0x{frame.sender.hex()}", f"0x{(frame.to or b'').hex()}"
    value = f"{frame.value or 0:#x}"
    if frame.type == "SELFDESTRUCT":
        members = f'"address":"{sender}","balance":"{value}","refundAddress":"{to}"'
    elif frame.type in CREATIONS:
        members = (
            f'"creationMethod":"{frame.type.lower()}","from":"{sender}"'
            f',"gas":"{frame.gas:#x}","init":"0x{frame.input.hex()}","value":"{value}"'
        )
    else:
        members = (
            f'"callType":"{frame.type.lower()}","from":"{sender}"'
            f',"gas":"{frame.gas:#x}","input":"0x{frame.input.hex()}","to":"{to}"'
            f',"value":"{value}"'
        )
    return f'"action":{{{members}}}'


def _ending(frame: CallFrame, config: FlatCallConfig) -> str:
    """Return `error` and `result`, if present."""
    error = frame.error
    shown = ""
    if error is not None:
        text = _parity_error(error) if config.convert_parity_errors else error
        shown = f',"error":{json.dumps(text)}'
    if frame.type == "SELFDESTRUCT" or error not in (None, REVERTED):
        return shown
    gas_used, output = f'"gasUsed":"{frame.gas_used:#x}"', f"0x{frame.output.hex()}"
    if frame.type in CREATIONS:
        is_made = error is None and frame.to is not None
        address = f'"address":"0x{frame.to.hex()}",' if is_made and frame.to else ""
        return f'{shown},"result":{{{address}"code":"{output}",{gas_used}}}'
    return f'{shown},"result":{{{gas_used},"output":"{output}"}}'


def _parity_error(error: str) -> str:
    for prefix, text in _PARITY_PREFIXES.items():
        if error.startswith(prefix):
            return text
    return _PARITY_ERRORS.get(error, error)
