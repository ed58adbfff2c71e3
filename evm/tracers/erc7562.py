"""erc7562Tracer: data for a bundler's checks of user operations.

The result is the call tree, with the opcodes, storage accesses and code accesses of
each call.

Sources: go-ethereum, eth/tracers/native/erc7562.go;
https://eips.ethereum.org/EIPS/eip-7562
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evm.addresses import address_of
from evm.frame_errors import OUT_OF_GAS, UNPAID_CODE
from evm.opcodes import NUMBERS, OPCODES
from evm.tracers.call import CallConfig, frame_members
from evm.tracers.frames import FrameLog
from evm.tracers.keccak_preimages import keccak_input

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from evm.state import State
    from evm.tracers.frames import CallFrame
    from evm.tracers.steps import Step, TracedTransaction

IGNORED_OPCODES: tuple[int, ...] = (
    *range(NUMBERS["PUSH0"], NUMBERS["SWAP16"] + 1),
    *map(
        NUMBERS.__getitem__,
        [
            "POP",
            "ADD",
            "SUB",
            "MUL",
            "DIV",
            "EQ",
            "LT",
            "GT",
            "SLT",
            "SGT",
            "SHL",
            "SHR",
            "AND",
            "OR",
            "NOT",
            "ISZERO",
        ],
    ),
)
"""Opcodes that are not counted unless the caller names others."""

_GAS, _ISZERO = NUMBERS["GAS"], NUMBERS["ISZERO"]
_EXTCODESIZE = NUMBERS["EXTCODESIZE"]
_EXT = frozenset({_EXTCODESIZE, NUMBERS["EXTCODEHASH"], NUMBERS["EXTCODECOPY"]})
_CALLS = frozenset(
    NUMBERS[name] for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
)
_ENDS = frozenset({NUMBERS["RETURN"], NUMBERS["REVERT"]})
_SLOAD, _SSTORE = NUMBERS["SLOAD"], NUMBERS["SSTORE"]
_TLOAD, _TSTORE = NUMBERS["TLOAD"], NUMBERS["TSTORE"]
_TAKEN = tuple(opcode.taken for opcode in OPCODES)
_WITH_LOG = CallConfig(with_log=True)
_WITHOUT_LOG = CallConfig()


@dataclass(slots=True)
class _Call:
    """A call with its opcodes and accesses."""

    frame: CallFrame
    calls: list[_Call] = field(default_factory=list)
    logs: list[FrameLog] = field(default_factory=list)
    reads: dict[int, int] = field(default_factory=dict)
    """Slot → value at the call's first read. Slots that the call wrote first are
    absent."""
    writes: Counter[int] = field(default_factory=Counter)
    transient_reads: Counter[int] = field(default_factory=Counter)
    transient_writes: Counter[int] = field(default_factory=Counter)
    code_accesses: list[bytes] = field(default_factory=list)
    """Accounts accessed by EXTCODE… instructions, except by EXTCODESIZE followed by
    ISZERO."""
    opcodes: Counter[int] = field(default_factory=Counter)
    code_sizes: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """Size of the code and the first opcode that named the account."""
    is_out_of_gas: bool = False
    """Whether a call below the outermost one ran out of gas."""


class Erc7562Tracer:
    """A `StepTracer` whose result is callTracer's, with members for ERC-7562."""

    wants_steps = True
    wants_frames = True

    def __init__(
        self,
        ignored_opcodes: Container[int] = IGNORED_OPCODES,
        *,
        with_log: bool = False,
    ) -> None:
        """Create a tracer for one transaction.

        ignored_opcodes: opcodes that are not counted.
        with_log: whether calls contain their logs.
        """
        self._ignored = ignored_opcodes
        self._log_config = _WITH_LOG if with_log else _WITHOUT_LOG
        self._state: State
        self._open: list[_Call] = []
        self._last: tuple[int, int | None] | None = None
        """The previous instruction, of any call, and the top of its stack."""
        self._preimages: set[bytes] = set()
        self._top: _Call | None = None

    def start(self, transaction: TracedTransaction) -> None:
        """Receive the transaction before its execution."""
        self._state = transaction.state
        # The frame is set at the end of the transaction.
        self._open = [_Call(None)]  # type: ignore[arg-type]

    def enter(self, frame: CallFrame) -> None:
        """Record the beginning of a call."""
        call = _Call(frame)
        self._open[-1].calls.append(call)
        self._open.append(call)

    def exit(self, frame: CallFrame) -> None:
        """Record the end of a call."""
        call, error = self._open.pop(), frame.error or ""
        call.is_out_of_gas = error == UNPAID_CODE or error.startswith(OUT_OF_GAS)
        call.frame = self._own_frame(frame, call)

    def step(self, step: Step) -> None:
        """Record an instruction.

        Without enough operands, no account or slot is recorded.
        """
        op, call, values = step.op, self._open[-1], step.frame.stack
        if op in _ENDS:
            self._last = None
        if self._last is not None:
            self._note_what_follows(op, call, *self._last)
        if op != _GAS and op not in self._ignored:
            call.opcodes[op] += 1
        if len(values) >= _TAKEN[op]:
            self._note_accesses(step, call, values)
        preimage = keccak_input(step)
        if preimage is not None:
            self._preimages.add(preimage)
        self._last = op, values[-1] if values else None

    @staticmethod
    def _note_what_follows(op: int, call: _Call, last: int, top: int | None) -> None:
        """Record the previous instruction, if it counts only before certain instructions."""
        is_size_check = last == _EXTCODESIZE and op == _ISZERO
        if last in _EXT and top is not None and not is_size_check:
            call.code_accesses.append(address_of(top))
        if last == _GAS and op not in _CALLS:
            call.opcodes[_GAS] += 1

    def _note_accesses(self, step: Step, call: _Call, values: list[int]) -> None:
        """Record the code and storage that an instruction accesses."""
        op = step.op
        if op in _EXT or op in _CALLS:
            address = address_of(values[-1] if op in _EXT else values[-2])
            if address not in call.code_sizes:
                call.code_sizes[address] = len(self._state.get_code(address)), op
        elif op == _SLOAD:
            slot = values[-1]
            if slot not in call.reads and slot not in call.writes:
                account = step.frame.message.storage_address
                call.reads[slot] = self._state.get_storage(account, slot)
        elif op == _SSTORE:
            call.writes[values[-1]] += 1
        elif op == _TLOAD:
            call.transient_reads[values[-1]] += 1
        elif op == _TSTORE:
            call.transient_writes[values[-1]] += 1

    def fault(self, step: Step) -> None:
        """Do nothing: `step` has recorded the failed instruction."""

    def log(
        self, address: bytes, topics: tuple[bytes, ...], data: bytes, index: int
    ) -> None:
        """Add a log to the running call."""
        call = self._open[-1]
        call.logs.append(FrameLog(address, topics, data, index, len(call.calls)))

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """Receive the outermost frame at the end of the transaction."""
        self._top = self._open[0]
        self._top.frame = self._own_frame(frame, self._top)

    def _own_frame(self, frame: CallFrame, call: _Call) -> CallFrame:
        """Return a copy of a frame with a call's logs.

        It lacks the error of unpaid code, if the creation succeeded. Under Frontier, such
        a creation succeeds with an account without code.
        """
        error = frame.error
        if error == UNPAID_CODE and self._state.fork.name == "frontier":
            error = None
        return replace(frame, logs=call.logs, error=error)

    def result(self) -> bytes:
        """Return the tree as JSON."""
        assert self._top is not None
        preimages = ",".join([f'"0x{each.hex()}"' for each in sorted(self._preimages)])
        keccak = f',"keccak":[{preimages}]' if preimages else ""
        return self._tree(self._top, keccak).encode()

    def _tree(self, top: _Call, keccak: str) -> str:
        """Return a call's JSON.

        It is iterative, because calls may be nested 1024 levels deep.
        """
        config = self._log_config
        failed = top.frame.error is not None
        head, tail = self._members(top, failed, config)
        parts = [head, keccak]
        waiting = [(iter(top.calls), tail, failed, bool(top.calls))]
        separator = ',"calls":['
        while waiting:
            calls, tail, is_void, has_calls = waiting[-1]
            call = next(calls, None)
            if call is None:
                waiting.pop()
                parts.append("]" + tail if has_calls else tail)
                separator = ","
                continue
            is_void = is_void or call.frame.error is not None
            head, tail = self._members(call, is_void, config)
            parts += (separator, head)
            waiting.append((iter(call.calls), tail, is_void, bool(call.calls)))
            separator = ',"calls":['
        return "".join(parts)

    @staticmethod
    def _members(call: _Call, is_void: bool, config: CallConfig) -> tuple[str, str]:
        """Return the JSON before and after a call's `keccak` and `calls`."""
        frame = call.frame
        head, logs, value, kind = frame_members(frame, config, is_void)
        reads = ",".join(
            f'"0x{slot:064x}":["0x{found:064x}"]'
            for slot, found in sorted(call.reads.items())
        )
        sizes = ",".join(
            f'"0x{address.hex()}":{{"contractSize":{size},"opcode":{op}}}'
            for address, (size, op) in sorted(call.code_sizes.items())
        )
        accesses = ",".join(f'"0x{address.hex()}"' for address in call.code_accesses)
        opcodes = sorted((f"{op:#x}", count) for op, count in call.opcodes.items())
        counts = ",".join(f'"{op}":{count}' for op, count in opcodes)
        out_of_gas = "true" if call.is_out_of_gas else "false"
        return (
            f'{head}{logs}{value},"accessedSlots":{{"reads":{{{reads}}}'
            f',"writes":{_slots(call.writes)}'
            f',"transientReads":{_slots(call.transient_reads)}'
            f',"transientWrites":{_slots(call.transient_writes)}}}'
            f',"extCodeAccessInfo":[{accesses}],"usedOpcodes":{{{counts}}}'
            f',"contractSize":{{{sizes}}},"outOfGas":{out_of_gas}',
            f',"type":"{kind}"}}',
        )


def _slots(counts: Mapping[int, int]) -> str:
    """Return the number of accesses of each slot, as JSON."""
    members = [f'"0x{slot:064x}":{count}' for slot, count in sorted(counts.items())]
    return f"{{{','.join(members)}}}"
