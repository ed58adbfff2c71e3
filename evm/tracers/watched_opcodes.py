"""Opcodes that report the accounts, slots and calls they access to the watcher.

Each wraps the fork's opcode without changing its effect. A few opcodes save values in
the frame's `before`, because the error of a failure depends on them.
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

from evm.executor import MAX_NONCE
from evm.gas import memory_gas
from evm.interpreter import OPERATE, OpcodeTable
from evm.opcodes import NUMBERS, OPCODES
from evm.stack import address_of
from evm.tracers.frames import CREATIONS, CallFrame

DEPTH = "max call depth exceeded"
BALANCE = "insufficient balance for transfer"
NONCE = "nonce uint64 overflow"
COLLISION = "contract address collision"

Operation = Callable[[Any], None]
"""The function that the interpreter calls with a frame."""
Wrap = Callable[[Operation, int, int], Operation]
"""(operation, number of its stack items, gas charged before it) → wrapped operation."""


def _save(operation: Operation, taken: int, paid: int) -> Operation:
    """Save the operands and the gas if the instruction fails."""

    def run(frame: Any) -> None:
        items, gas = frame.stack[-taken:], frame.gas_remaining
        try:
            operation(frame)
        except VMError:
            frame.before = items, gas + paid
            raise

    return run


def _access_account(operation: Operation, taken: int, paid: int) -> Operation:
    """Report the account that BALANCE, EXTCODESIZE, EXTCODECOPY or EXTCODEHASH reads."""

    def run(frame: Any) -> None:
        items = frame.stack[-taken:]
        frame.before = items, frame.gas_remaining + paid
        operation(frame)
        frame.watcher.accounts.add(address_of(items[-1]))

    return run


def _access_slot(operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        values = frame.stack
        slot = values[-1] if values else 0
        operation(frame)
        frame.watcher.slots[frame.msg.storage_address].add(slot)

    return run


def _store(operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        items = frame.stack[-2:]
        try:
            operation(frame)
        except VMError:
            # SSTORE charges its gas in one step. If that fails, nothing is charged.
            frame.before = items, frame.gas_remaining + paid
            raise
        frame.watcher.slots[frame.msg.storage_address].add(items[-1])

    return run


# Calls


def _call(name: str, operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        items = frame.stack[-taken:]
        frame.before = items, frame.gas_remaining + paid
        if len(items) == taken:
            frame.pending = name, address_of(items[-2])
        operation(frame)
        if frame.pending is not None:
            _refuse_call(frame, items)

    return run


def _refuse_call(frame: Any, items: list[int]) -> None:
    """Report a call that failed because of the depth limit or the balance."""
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
        input=bytes(frame.memory[start : start + size]),
        value=value,
        depth=message.depth + 1,
        error=DEPTH if too_deep else BALANCE,
    )
    frame.watcher.add_delegate(frame.state, to)
    frame.watcher.enter(call)
    frame.watcher.exit(call)


# Creations


class _Before(NamedTuple):
    """The values that a creating instruction had before its execution."""

    items: list[int]
    gas: int
    memory_bytes: int
    nonce: int
    """The creator's."""


def _create(name: str, operation: Any, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        before = _Before(
            frame.stack[-taken:],
            frame.gas_remaining,
            len(frame.memory),
            frame.state.get_nonce(frame.msg.storage_address),
        )
        frame.before = before.items, before.gas + paid
        frame.pending = name, None
        operation(frame)
        if frame.pending is not None:
            frame.pending = None
            _refuse_creation(frame, name, operation, before)

    return run


def _new_address(frame: Any, nonce: int, code: bytes, salt: int | None) -> bytes:
    """Return the address of a contract that a frame creates.

    nonce: the creator's. code: the init code. salt: of CREATE2; None for CREATE.
    """
    creator = frame.msg.storage_address
    if salt is None:
        return bytes(generate_contract_address(creator, nonce))
    return bytes(generate_safe_contract_address(creator, salt, code))


def forbidden_creation(frame: Any) -> bytes | None:
    """Return the address of the creation that just failed in a static call.

    None if the failed instruction is no creation.
    """
    name, _ = frame.pending or (None, None)
    if name not in CREATIONS:
        return None
    items, _ = frame.before
    _, start, size, *rest = items[::-1]
    # The memory was not expanded: its bytes beyond the end are zero.
    code = bytes(frame.memory[start : start + size]).ljust(size, b"\0")
    nonce = frame.state.get_nonce(frame.msg.storage_address)
    return _new_address(frame, nonce, code, rest[0] if rest else None)


def _refuse_creation(frame: Any, name: str, opcode: Any, before: _Before) -> None:
    """Report a creation that failed before its init code ran."""
    sender, (value, start, size, *rest) = frame.msg.storage_address, before.items[::-1]
    salt = rest[0] if rest else None
    code = bytes(frame.memory[start : start + size])
    address = _new_address(frame, before.nonce, code, salt)
    error = _refusal(frame, value, before.nonce)
    given, used = opcode.max_child_gas_modifier(frame.gas_remaining), 0
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
    """Return geth's text for a rejected creation: that of the first failed check."""
    if frame.msg.depth + 1 > STACK_DEPTH_LIMIT:
        return DEPTH
    if frame.state.get_balance(frame.msg.storage_address) < value:
        return BALANCE
    return NONCE if nonce >= MAX_NONCE else COLLISION


def _taken_by_collision(frame: Any, before: _Before, price: int) -> int:
    """Return the gas that a collision uses up: the gas passed to the init code."""
    memory = memory_gas(len(frame.memory)) - memory_gas(before.memory_bytes)
    taken: int = before.gas - frame.gas_remaining
    return taken - price - memory


def _selfdestruct(operation: Operation, taken: int, paid: int) -> Operation:
    def run(frame: Any) -> None:
        items = frame.stack[-1:]
        frame.before = items, frame.gas_remaining + paid
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


_SAVING = (
    *(f"LOG{topics}" for topics in range(5)),
    *("RETURNDATACOPY", "MCOPY", "MSTORE8", "TSTORE"),
)
_WRAPS: dict[str, Wrap] = {
    "SLOAD": _access_slot,
    "SSTORE": _store,
    "SELFDESTRUCT": _selfdestruct,
    **dict.fromkeys(
        ("BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"), _access_account
    ),
    **{
        name: partial(_call, name)
        for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
    },
    **{name: partial(_create, name) for name in ("CREATE", "CREATE2")},
    **dict.fromkeys(_SAVING, _save),
}
SAVING_OPCODES = frozenset(NUMBERS[name] for name in _WRAPS if name != "SLOAD")
"""Opcodes that save values in `before`, for the case of a failure."""


def watch_opcodes(table: OpcodeTable) -> OpcodeTable:
    """Return the table with the watched opcodes wrapped."""
    entries = list(table.entries)
    for name, wrap in _WRAPS.items():
        number = NUMBERS[name]
        _, gas, operation = entries[number]
        if not isinstance(operation, InvalidOpcode):
            wrapped = wrap(operation, OPCODES[number].taken, gas)
            # The wrapped operation always is a function of the frame.
            entries[number] = OPERATE, gas, wrapped
    return table._replace(entries=tuple(entries))
