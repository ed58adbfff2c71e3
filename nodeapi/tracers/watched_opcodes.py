"""Opcodes that tell the watcher of a transaction what they touch and call.

Each wraps the fork's own and leaves what that does as it is. The few whose failure can
only be named by what they found keep it in the frame's `before`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from eth._utils.address import (
    generate_contract_address,
    generate_safe_contract_address,
)
from eth.constants import STACK_DEPTH_LIMIT
from eth.exceptions import Halt, VMError
from eth.vm.logic.invalid import InvalidOpcode
from eth.vm.logic.system import CreateOpcodeStackData

from nodeapi.evm.computation import memory_gas
from nodeapi.evm.executor import MAX_NONCE
from nodeapi.evm.interpreter import OPERATE, OpcodeTable
from nodeapi.tracers.costs import address_of
from nodeapi.tracers.frames import CallFrame
from nodeapi.tracers.opcodes import NUMBERS, OPCODES

DEPTH = "max call depth exceeded"
BALANCE = "insufficient balance for transfer"
NONCE = "nonce uint64 overflow"
COLLISION = "contract address collision"

Operation = Callable[[Any], None]
"""What the interpreter calls with a frame."""
Wrap = Callable[[Operation, int, int], Operation]
"""(operation, stack items that it takes, gas that was taken before) → operation."""


def _remember(operation: Operation, taken: int, paid: int) -> Operation:
    """Keep the operands and the gas, in case that it fails."""

    def run(frame: Any) -> None:
        items, gas = frame._stack.values[-taken:], frame._gas_meter.gas_remaining
        try:
            operation(frame)
        except VMError:
            frame.before = items, gas + paid
            raise

    return run


def _look(operation: Operation, taken: int, paid: int) -> Operation:
    """BALANCE, EXTCODESIZE, EXTCODECOPY, EXTCODEHASH touch an account."""

    def run(frame: Any) -> None:
        items = frame._stack.values[-taken:]
        frame.before = items, frame._gas_meter.gas_remaining + paid
        operation(frame)
        frame.watcher.accounts.add(address_of(items[-1]))

    return run


def _load(operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        values = frame._stack.values
        slot = values[-1] if values else 0
        operation(frame)
        frame.slots.add(slot)

    return run


def _store(operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        items = frame._stack.values[-2:]
        try:
            operation(frame)
        except VMError:
            # It takes its gas in one go, so that what there was is there still.
            frame.before = items, frame._gas_meter.gas_remaining + paid
            raise
        frame.slots.add(items[-1])

    return run


# Calls


def _call(name: str, operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        items = frame._stack.values[-taken:]
        frame.before = items, frame._gas_meter.gas_remaining + paid
        if len(items) == taken:
            frame.pending = name, address_of(items[-2])
        operation(frame)
        if frame.pending is not None:
            _refuse_call(frame, items)

    return run


def _refuse_call(frame: Any, items: list[int]) -> None:
    """Report a call that the depth or the balance forbade."""
    (name, to), frame.pending = frame.pending, None
    message = frame.msg
    value, (start, size) = None, items[-4:-2][::-1]
    if name in ("CALL", "CALLCODE"):
        value, (start, size) = items[-3], items[-5:-3][::-1]
    elif name == "DELEGATECALL":
        value = message.value
    too_deep = message.depth + 1 > STACK_DEPTH_LIMIT
    call = CallFrame(
        type=name,
        sender=message.storage_address,
        to=to,
        gas=frame.gas_returned,
        input=bytes(frame._memory._bytes[start : start + size]),
        value=value,
        depth=message.depth + 1,
        error=DEPTH if too_deep else BALANCE,
    )
    if frame.state.fork.has_delegations:
        frame.watcher.look_at_delegate(frame.state, to)
    frame.watcher.enter(call)
    frame.watcher.exit(call)


# Creations


class _Before(NamedTuple):
    """What a creating instruction found."""

    items: list[int]
    gas: int
    memory_bytes: int
    nonce: int
    """The creator's."""


def _create(name: str, operation: Any, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        before = _Before(
            frame._stack.values[-taken:],
            frame._gas_meter.gas_remaining,
            len(frame._memory._bytes),
            frame.state.get_nonce(frame.msg.storage_address),
        )
        frame.before = before.items, before.gas + paid
        frame.pending = name, None
        operation(frame)
        if frame.pending is not None:
            frame.pending = None
            _refuse_creation(frame, name, operation, before)

    return run


def _refuse_creation(frame: Any, name: str, opcode: Any, before: _Before) -> None:
    """Report a creation that never began."""
    sender, (value, start, size, *rest) = frame.msg.storage_address, before.items[::-1]
    salt = rest[0] if rest else None
    code = bytes(frame._memory._bytes[start : start + size])
    if salt is None:
        address = generate_contract_address(sender, before.nonce)
    else:
        address = generate_safe_contract_address(sender, salt, code)
    error = _refusal(frame, value, before.nonce)
    given, used = opcode.max_child_gas_modifier(frame._gas_meter.gas_remaining), 0
    if error == COLLISION:
        price = opcode.get_gas_cost(CreateOpcodeStackData(value, start, size, salt))
        given = used = _taken_by_collision(frame, before, price)
    creation = CallFrame(
        type=name,
        sender=sender,
        to=address,
        gas=given,
        gas_used=used,
        input=code,
        value=value,
        depth=frame.msg.depth + 1,
        error=error,
    )
    frame.watcher.enter(creation)
    frame.watcher.exit(creation)


def _refusal(frame: Any, value: int, nonce: int) -> str:
    """Return why a creation did not begin; they are looked at in this order."""
    if frame.msg.depth + 1 > STACK_DEPTH_LIMIT:
        return DEPTH
    if frame.state.get_balance(frame.msg.storage_address) < value:
        return BALANCE
    return NONCE if nonce >= MAX_NONCE else COLLISION


def _taken_by_collision(frame: Any, before: _Before, price: int) -> int:
    """Return the gas that the init code would have got: a collision takes it."""
    memory = memory_gas(len(frame._memory._bytes)) - memory_gas(before.memory_bytes)
    taken: int = before.gas - frame._gas_meter.gas_remaining
    return taken - price - memory


def _selfdestruct(operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        items = frame._stack.values[-1:]
        frame.before = items, frame._gas_meter.gas_remaining + paid
        address = frame.msg.storage_address
        value = frame.state.get_balance(address)
        try:
            operation(frame)
        except Halt:
            end = CallFrame(
                type="SELFDESTRUCT",
                sender=address,
                to=address_of(items[-1]),
                gas=0,
                input=b"",
                value=value,
                depth=frame.msg.depth + 1,
            )
            frame.watcher.destroy(end)
            raise

    return run


_REMEMBERED = (
    *(f"LOG{topics}" for topics in range(5)),
    *("RETURNDATACOPY", "MCOPY", "MSTORE8", "TSTORE"),
)
_WRAPS: dict[str, Wrap] = {
    "SLOAD": _load,
    "SSTORE": _store,
    "SELFDESTRUCT": _selfdestruct,
    **dict.fromkeys(("BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"), _look),
    **{
        name: partial(_call, name)
        for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
    },
    **{name: partial(_create, name) for name in ("CREATE", "CREATE2")},
    **dict.fromkeys(_REMEMBERED, _remember),
}
REMEMBERED = frozenset(NUMBERS[name] for name in _WRAPS if name != "SLOAD")
"""Opcodes that leave what they found in `before` when they fail."""


def watch_opcodes(table: OpcodeTable) -> OpcodeTable:
    """Return the table with the watched opcodes wrapped."""
    entries = list(table.entries)
    for name, wrap in _WRAPS.items():
        number = NUMBERS[name]
        _, gas, operation = entries[number]
        if not isinstance(operation, InvalidOpcode):
            wrapped = wrap(operation, OPCODES[number].taken, gas)
            # The operation is a function of the frame now, so there is one way to call it.
            entries[number] = OPERATE, gas, wrapped
    return table._replace(entries=tuple(entries))
