"""The struct logger: every instruction with its gas, stack, memory and storage.

Its result may be far larger than memory. It is therefore written during the execution,
and `result` returns only the missing end.

Source: go-ethereum, eth/tracers/logger/logger.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evm.frame_errors import REVERTED
from evm.opcodes import NUMBERS, OPCODES, STACK_LIMIT
from evm.tracers.steps import InstructionTracer

if TYPE_CHECKING:
    from evm.tracers.frames import CallFrame
    from evm.tracers.steps import Step

CHUNK_BYTES = 65_536
"""Approximate size of each write."""

_SLOAD, _SSTORE = NUMBERS["SLOAD"], NUMBERS["SSTORE"]
_DEEP = ("SWAPN", "EXCHANGE")
_CHANGED = tuple(
    STACK_LIMIT if opcode.name in _DEEP else opcode.taken for opcode in OPCODES
)
"""Opcode → number of items, from the top, that it may change."""
_HEADS = tuple(f',"op":"{opcode.name}","gas":' for opcode in OPCODES)


@dataclass(frozen=True, slots=True)
class StructLogOptions:
    """The content of entries, and the limit of their number."""

    enable_memory: bool = False
    disable_stack: bool = False
    disable_storage: bool = False
    enable_return_data: bool = False
    limit: int = 0
    """Entries per transaction. 0: all entries. Negative: none, as in geth."""


class _Stack:
    """A frame's stack as JSON. Most instructions change only the top of it."""

    __slots__ = ("_texts", "_values", "op", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.op = NUMBERS["STOP"]
        """The instruction that was seen last."""
        self._values: list[int] = step.frame.stack
        self._texts: list[str] = []

    def render(self) -> str:
        """Return the stack as JSON. It has to be called at each instruction."""
        texts, values = self._texts, self._values
        changed = _CHANGED[self.op]
        if changed:
            del texts[-changed:]
        if len(texts) < len(values):
            texts += [f'"{value:#x}"' for value in values[len(texts) :]]
        self.op = self.step.op
        return ",".join(texts)


class StructLogger(InstructionTracer):
    """A `StepTracer` that writes an entry for each instruction."""

    def __init__(
        self, options: StructLogOptions, write: Callable[[bytes], object]
    ) -> None:
        """Write the beginning of a JSON object to `write`, in pieces.

        `result` returns its end.
        """
        self._options = options
        self._write = write
        self._pieces: list[str] = ['{"structLogs":[']
        self._pending = 0
        """Characters in the pieces."""
        self._count = 0
        self._stacks: list[_Stack] = []
        """One for each depth."""
        self._stack: _Stack | None = None
        """The stack of the executing frame."""
        self._storage: dict[bytes, dict[int, str]] = {}
        """Contract → the slots that it read and wrote: slot → JSON member."""
        self._end = ""

    def step(self, step: Step) -> None:
        """Write an entry."""
        options = self._options
        # A negative limit is always reached.
        if options.limit and self._count >= options.limit:
            return
        text = (
            f'{{"pc":{step.pc}{_HEADS[step.op]}{step.gas},"gasCost":{step.cost}'
            f',"depth":{step.depth}'
        )
        if step.error is not None:
            text += f',"error":"{step.error}"'
        if not options.disable_stack:
            stack = self._stack
            if stack is None or stack.step is not step:
                stack = self._stack = self._stack_of(step)
            text += f',"stack":[{stack.render()}]'
        if options.enable_return_data and (data := step.frame.return_data):
            text += f',"returnData":"0x{data.hex()}"'
        if options.enable_memory and (memory := step.frame.memory):
            words = memory.hex(",", 32).replace(",", '","0x')
            text += f',"memory":["0x{words}"]'
        is_storage = step.op in (_SLOAD, _SSTORE) and step.error is None
        if is_storage and not options.disable_storage:
            text += self._storage_of(step)
        text += f',"refund":{step.refund}}}' if step.refund else "}"
        self._pieces.append("," + text if self._count else text)
        self._count += 1
        self._pending += len(text)
        if self._pending >= CHUNK_BYTES:
            self._flush()

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """Receive the outermost frame at the end of the transaction."""
        failed = "false" if frame.error is None else "true"
        # Return or revert data. The code of a failed creation is not reported.
        output = frame.output if frame.error in (None, REVERTED) else b""
        self._end = (
            f'],"gas":{gas_used},"failed":{failed},"returnValue":"0x{output.hex()}"}}'
        )

    def result(self) -> bytes:
        """Return the end of the JSON, which follows the text that was written."""
        self._flush()
        return self._end.encode()

    def _flush(self) -> None:
        self._write("".join(self._pieces).encode())
        self._pieces.clear()
        self._pending = 0

    def _stack_of(self, step: Step) -> _Stack:
        depth, stacks = step.depth, self._stacks
        if len(stacks) >= depth:
            stack = stacks[depth - 1]
            if stack.step is step:
                return stack
            del stacks[depth - 1 :]
        stack = _Stack(step)
        stacks.append(stack)
        return stack

    def _storage_of(self, step: Step) -> str:
        """Return a contract's storage as the transaction has seen it so far."""
        values, address = step.frame.stack, step.frame.message.storage_address
        storage = self._storage.setdefault(address, {})
        if step.op == _SLOAD and values:
            slot = values[-1]
            value = step.frame.state.get_storage(address, slot)
        elif step.op == _SSTORE and len(values) >= 2:
            slot, value = values[-1], values[-2]
        else:
            return ""
        storage[slot] = f'"0x{slot:064x}":"0x{value:064x}"'
        members = ",".join([storage[key] for key in sorted(storage)])
        return f',"storage":{{{members}}}'
