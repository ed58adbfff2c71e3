"""Parity's `vmTrace`: every instruction with its effects, nested by call frames.

    {"code": "0x…", "ops": [{"pc": 0, "cost": 3, "sub": null,
        "ex": {"used": 79000, "push": ["0x60"], "mem": null, "store": null}}, …]}

cost: the instruction's gas, with the gas that a call or a creation gives to its frame.
used: the gas that is left after the instruction, and after its call or creation.
push: the topmost stack items afterwards: those that the instruction has pushed, and for
DUP and SWAP all down to the lowest one that it uses. `ex` is null if the instruction
failed. `sub` is the trace of the frame that a call or a creation has begun.

Source: OpenEthereum, rpc/src/v1/types/trace.rs and ethcore/evm/src/interpreter
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evm.opcodes import NUMBERS, OPCODES
from evm.tracers.frames import CREATIONS

if TYPE_CHECKING:
    from evm.tracers.frames import CallFrame
    from evm.tracers.steps import Step, TracedTransaction

CHUNK_BYTES = 65_536

_PUT = tuple(opcode.put for opcode in OPCODES)

_MEMORY_OPERANDS = {
    NUMBERS["MLOAD"]: (1, 0, 32),
    NUMBERS["MSTORE"]: (1, 0, 32),
    NUMBERS["MSTORE8"]: (1, 0, 1),
    NUMBERS["CALLDATACOPY"]: (1, 3, 0),
    NUMBERS["CODECOPY"]: (1, 3, 0),
    NUMBERS["RETURNDATACOPY"]: (1, 3, 0),
    NUMBERS["MCOPY"]: (1, 3, 0),
    NUMBERS["EXTCODECOPY"]: (2, 4, 0),
    NUMBERS["CALL"]: (6, 7, 0),
    NUMBERS["CALLCODE"]: (6, 7, 0),
    NUMBERS["DELEGATECALL"]: (5, 6, 0),
    NUMBERS["STATICCALL"]: (5, 6, 0),
}
"""Opcode → the memory that it reads or writes: the position of the offset and of the
length on the stack, counted from the top with 1, or 0 and a constant length."""

_SSTORE, _REVERT = NUMBERS["SSTORE"], NUMBERS["REVERT"]
_SELFDESTRUCT = "SELFDESTRUCT"


class _Operation:
    """An instruction in execution, whose effects are not known yet."""

    __slots__ = ("cost", "gas", "has_sub", "memory", "op", "pc", "store")

    def __init__(self, step: Step) -> None:
        values = step.frame.stack
        self.pc, self.op, self.cost = step.pc, step.op, step.cost
        self.gas = step.gas - step.cost
        """The gas that is left if the frame ends with this instruction."""
        self.has_sub = False
        self.memory: tuple[int, int] | None = None
        """Offset and length of the range to show, or None."""
        offset, length, size = _MEMORY_OPERANDS.get(step.op, (0, 0, 0))
        # A fork without the opcode does not check the stack for it.
        if len(values) >= max(offset, length):
            size = values[-length] if length else size
            if size:
                self.memory = values[-offset], size
        self.store = "null"
        if step.op == _SSTORE:
            self.store = f'{{"key":"{values[-1]:#x}","val":"{values[-2]:#x}"}}'


class _Frame:
    """A call frame whose trace is being written."""

    __slots__ = ("begin", "code", "has_begun", "operation")

    def __init__(self, code: bytes) -> None:
        self.code = code
        """The init code of a creation. For a call, b"" until its first instruction."""
        self.has_begun = False
        self.begin = ""
        """Separator before the next instruction."""
        self.operation: _Operation | None = None
        """The last instruction, or None if it is written already."""


class VmTracer:
    """A `StepTracer` that writes the trace of one transaction while it is executed."""

    wants_steps = True
    wants_frames = True

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Write JSON to `write`, in pieces. `result` returns the end."""
        self._write = write
        self._pieces: list[str] = []
        self._size = 0
        self._frames: list[_Frame] = []
        """The frames in execution, the outermost one first."""

    def start(self, transaction: TracedTransaction) -> None:
        """Begin the outermost frame."""
        self._frames = [_Frame(transaction.input if transaction.to is None else b"")]

    def step(self, step: Step) -> None:
        """Write the frame's previous instruction with its effects, and keep this one."""
        frame = self._frames[-1]
        if not frame.has_begun:
            self._begin(frame, step.frame.code)
        operation = frame.operation
        if operation is not None:
            self._finish(frame, operation, self._effects(operation, step))
        if step.error is not None:
            self._put(f'{frame.begin}{{"pc":{step.pc},"cost":{step.cost}')
            self._put(',"sub":null,"ex":null}')
            frame.begin, frame.operation = ",", None
            return
        frame.operation = _Operation(step)

    def fault(self, step: Step) -> None:
        """Write an instruction that has failed. REVERT does not count as failed."""
        frame = self._frames[-1]
        if step.op != _REVERT and frame.operation is not None:
            self._finish(frame, frame.operation, "null")

    def enter(self, frame: CallFrame) -> None:
        """Begin the trace of a call or a creation, inside that of its instruction."""
        if frame.type == _SELFDESTRUCT:
            return
        parent = self._frames[-1]
        is_creation = frame.type in CREATIONS
        if parent.operation is not None:
            if is_creation:
                parent.operation.cost += frame.gas
            self._put(self._head(parent, parent.operation))
            parent.operation.has_sub = True
        self._frames.append(_Frame(frame.input if is_creation else b""))

    def exit(self, frame: CallFrame) -> None:
        """End the trace of a call or a creation."""
        if frame.type != _SELFDESTRUCT:
            self._end(self._frames.pop())

    def log(
        self, address: bytes, topics: tuple[bytes, ...], data: bytes, index: int
    ) -> None:
        """Do nothing: the result contains no logs."""

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """End the trace of the outermost frame."""
        while self._frames:
            self._end(self._frames.pop())

    def result(self) -> bytes:
        """Return the end of the JSON, which follows the text that was written."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return text.encode()

    def _begin(self, frame: _Frame, code: bytes) -> None:
        self._put(f'{{"code":"0x{code.hex()}","ops":[')
        frame.has_begun = True

    def _end(self, frame: _Frame) -> None:
        if not frame.has_begun:
            self._begin(frame, frame.code)
        operation = frame.operation
        if operation is not None:
            ending = _executed(operation.gas, [], "null", operation.store)
            self._finish(frame, operation, ending)
        self._put("]}")

    def _effects(self, operation: _Operation, step: Step) -> str:
        """Return `ex` of an instruction. step: the next one of the same frame."""
        count, memory = _PUT[operation.op], "null"
        pushed = step.frame.stack[-count:] if count else []
        if operation.memory is not None:
            offset, size = operation.memory
            data = step.frame.memory[offset : offset + size]
            memory = f'{{"data":"0x{data.hex()}","off":{offset}}}'
        return _executed(step.gas, pushed, memory, operation.store)

    def _head(self, frame: _Frame, operation: _Operation) -> str:
        """Return the JSON of an instruction up to the value of `sub`."""
        begin, frame.begin = frame.begin, ","
        return f'{begin}{{"pc":{operation.pc},"cost":{operation.cost},"sub":'

    def _finish(self, frame: _Frame, operation: _Operation, effects: str) -> None:
        """Write an instruction, or the rest of it behind its `sub`."""
        head = "" if operation.has_sub else self._head(frame, operation) + "null"
        self._put(f'{head},"ex":{effects}}}')
        frame.operation = None

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size >= CHUNK_BYTES:
            self._write(self.result())


def _executed(gas: int, pushed: list[int], memory: str, store: str) -> str:
    values = ",".join([f'"{value:#x}"' for value in pushed])
    return f'{{"used":{gas},"push":[{values}],"mem":{memory},"store":{store}}}'
