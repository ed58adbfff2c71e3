"""Results of Otterscan's methods for one transaction, computed from trace records.

The forms are Erigon's: https://docs.otterscan.io/api-docs/ots-api
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evm.frame_errors import REVERTED
from evm.tracers.derived import Derivation, RecordedTransaction, call_tree
from evm.tracers.frames import CREATIONS, CallFrame
from evm.tracers.parties import visible_calls

_WITHOUT_VALUE = frozenset({"DELEGATECALL", "STATICCALL"})

_OPERATIONS = {"CALL": 0, "SELFDESTRUCT": 1, "CREATE": 2, "CREATE2": 3}
"""Numbers of internal operations: transfer, self-destruction, creations."""

_ZERO_ADDRESS = bytes(20)
"""Stands for the contract of a failed creation, which trace records do not name."""


def _trace(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
    top, details = call_tree(transaction)
    entries = [_trace_entry(frame) for frame in _frames(top, details.precompiles)]
    return f"[{','.join(entries)}]".encode()


def _operations(
    transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
) -> bytes:
    top, _ = call_tree(transaction)
    entries = [_operation(frame) for frame in _frames(top) if _is_operation(frame)]
    return f"[{','.join(entries)}]".encode()


def _error(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
    top, _ = call_tree(transaction)
    output = top.output if top.error == REVERTED else b""
    return f'"0x{output.hex()}"'.encode()


OTS_TRACE = Derivation("ots_traceTransaction", _trace)
"""The call frames as a list with their depth."""

OTS_OPERATIONS = Derivation("ots_getInternalOperations", _operations)
"""The transfers, creations and self-destructions below the first frame."""

OTS_ERROR = Derivation("ots_getTransactionError", _error)
"""The data with which a transaction was reverted, `0x` if it was not."""


def contract_creator(address: bytes) -> Derivation:
    """Return the derivation of the creator of a contract in a transaction, or of null."""

    def derive(transaction: RecordedTransaction, codes: Mapping[bytes, bytes]) -> bytes:
        top, _ = call_tree(transaction)
        creators = [
            frame.sender
            for frame in _standing_frames(top)
            if frame.type in CREATIONS and frame.to == address
        ]
        if not creators:
            return b"null"
        name, creator = transaction.hash.hex(), creators[-1].hex()
        return f'{{"hash":"0x{name}","creator":"0x{creator}"}}'.encode()

    return Derivation(f"ots_getContractCreator {address.hex()}", derive)


def _frames(
    top: CallFrame, precompiles: frozenset[bytes] = frozenset()
) -> Iterator[CallFrame]:
    """Yield the call frames in order, without those of precompiled contracts."""
    waiting = [top]
    while waiting:
        frame = waiting.pop()
        yield frame
        waiting += visible_calls(frame, precompiles)[::-1]


def _standing_frames(top: CallFrame) -> Iterator[CallFrame]:
    """Yield the call frames that neither failed nor are below one that failed."""
    waiting = [top]
    while waiting:
        frame = waiting.pop()
        if frame.error is None:
            yield frame
            waiting += frame.calls[::-1]


def _trace_entry(frame: CallFrame) -> str:
    is_end = frame.type == "SELFDESTRUCT"
    value = "null"
    if frame.type not in _WITHOUT_VALUE:
        value = f'"{frame.value or 0:#x}"'
    return (
        f'{{"type":"{frame.type}","depth":{frame.depth},{_ends(frame)}'
        f',"value":{value},"input":"0x{"" if is_end else frame.input.hex()}"'
        f',"output":"0x{frame.output.hex()}"}}'
    )


def _is_operation(frame: CallFrame) -> bool:
    if frame.depth == 0 or frame.type not in _OPERATIONS:
        return False
    return frame.type != "CALL" or bool(frame.value)


def _operation(frame: CallFrame) -> str:
    kind = _OPERATIONS[frame.type]
    return f'{{"type":{kind},{_ends(frame)},"value":"{frame.value or 0:#x}"}}'


def _ends(frame: CallFrame) -> str:
    to = _ZERO_ADDRESS if frame.to is None else frame.to
    return f'"from":"0x{frame.sender.hex()}","to":"0x{to.hex()}"'
