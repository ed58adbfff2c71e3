"""Instructions whose py-evm logic is replaced by the same, done with less ceremony.

Two tables map py-evm's logic function to ours, so that a fork, or a tracer, which put
another function behind an opcode is never overruled. tests/nodeapi/evm hold each
against the original.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from eth.constants import (
    GAS_COPY,
    GAS_LOGDATA,
    GAS_LOGTOPIC,
    GAS_SHA3WORD,
    UINT_256_MAX,
)
from eth.exceptions import InsufficientStack, OutOfGas, WriteProtection
from eth.vm.forks.berlin import logic as berlin_logic
from eth.vm.forks.berlin.logic import GAS_SCHEDULE_EIP2929
from eth.vm.forks.berlin.opcodes import BERLIN_OPCODES
from eth.vm.forks.byzantium.opcodes import BYZANTIUM_OPCODES
from eth.vm.forks.london.opcodes import LONDON_OPCODES
from eth.vm.forks.london.storage import GAS_SCHEDULE_EIP3529
from eth.vm.logic import arithmetic, comparison, context, memory, sha3
from eth.vm.logic.storage import NetSStoreGasSchedule
from sha3 import keccak_256

CEILING = 2**256
SIGN = 2**255
SLOAD, SSTORE, LOG0 = 0x54, 0x55, 0xA0
COLD_SLOAD_GAS, WARM_SLOAD_GAS = 2100, 100
SSTORE_STIPEND_GAS = 2300

Values = list[int]


def _add(values: Values) -> None:
    a = values.pop()
    values[-1] = (a + values[-1]) & UINT_256_MAX


def _subtract(values: Values) -> None:
    a = values.pop()
    values[-1] = (a - values[-1]) & UINT_256_MAX


def _multiply(values: Values) -> None:
    a = values.pop()
    values[-1] = (a * values[-1]) & UINT_256_MAX


def _divide(values: Values) -> None:
    a = values.pop()
    b = values[-1]
    values[-1] = a // b if b else 0


def _modulo(values: Values) -> None:
    a = values.pop()
    b = values[-1]
    values[-1] = a % b if b else 0


def _less(values: Values) -> None:
    a = values.pop()
    values[-1] = 1 if a < values[-1] else 0


def _greater(values: Values) -> None:
    a = values.pop()
    values[-1] = 1 if a > values[-1] else 0


def _signed_less(values: Values) -> None:
    a = values.pop()
    # Flipping the sign bit maps signed order to unsigned order.
    values[-1] = 1 if a ^ SIGN < values[-1] ^ SIGN else 0


def _signed_greater(values: Values) -> None:
    a = values.pop()
    values[-1] = 1 if a ^ SIGN > values[-1] ^ SIGN else 0


def _equal(values: Values) -> None:
    a = values.pop()
    values[-1] = 1 if a == values[-1] else 0


def _is_zero(values: Values) -> None:
    values[-1] = 0 if values[-1] else 1


def _and(values: Values) -> None:
    a = values.pop()
    values[-1] &= a


def _or(values: Values) -> None:
    a = values.pop()
    values[-1] |= a


def _xor(values: Values) -> None:
    a = values.pop()
    values[-1] ^= a


def _not(values: Values) -> None:
    values[-1] ^= UINT_256_MAX


def _shift_left(values: Values) -> None:
    shift = values.pop()
    values[-1] = (values[-1] << shift) & UINT_256_MAX if shift < 256 else 0


def _shift_right(values: Values) -> None:
    shift = values.pop()
    values[-1] = values[-1] >> shift if shift < 256 else 0


ARITHMETIC: dict[Any, Callable[[Values], None]] = {
    arithmetic.add: _add,
    arithmetic.sub: _subtract,
    arithmetic.mul: _multiply,
    arithmetic.div: _divide,
    arithmetic.mod: _modulo,
    arithmetic.shl: _shift_left,
    arithmetic.shr: _shift_right,
    comparison.lt: _less,
    comparison.gt: _greater,
    comparison.slt: _signed_less,
    comparison.sgt: _signed_greater,
    comparison.eq: _equal,
    comparison.iszero: _is_zero,
    comparison.and_op: _and,
    comparison.or_op: _or,
    comparison.xor: _xor,
    comparison.not_op: _not,
}
"""They see nothing but the stack; popping too much is an IndexError."""


def _memory_load(frame: Any) -> None:
    values = frame._stack.values
    if not values:
        raise InsufficientStack("Wanted 1 stack item, had none")
    start = values[-1]
    if start + 32 > len(frame._memory._bytes):
        frame.extend_memory(start, 32)
    data = frame._memory._bytes[start : start + 32]
    values[-1] = int.from_bytes(data, "big")


def _memory_store(frame: Any) -> None:
    values = frame._stack.values
    if len(values) < 2:
        raise InsufficientStack("Wanted 2 stack items")
    start = values.pop()
    if start + 32 > len(frame._memory._bytes):
        frame.extend_memory(start, 32)
    frame._memory._bytes[start : start + 32] = values.pop().to_bytes(32, "big")


def _call_data_load(frame: Any) -> None:
    values = frame._stack.values
    if not values:
        raise InsufficientStack("Wanted 1 stack item, had none")
    start = values[-1]
    word = frame.msg.data[start : start + 32]
    missing_bits = (32 - len(word)) * 8
    values[-1] = int.from_bytes(word, "big") << missing_bits


def _call_data_copy(frame: Any) -> None:
    target, start, size = frame.stack_pop_ints(3)
    frame.extend_memory(target, size)
    frame.consume_gas(GAS_COPY * ((size + 31) // 32), "CALLDATACOPY fee")
    if size:
        data = bytes(frame.msg.data[start : start + size]).ljust(size, b"\x00")
        frame._memory._bytes[target : target + size] = data


def _keccak(frame: Any) -> None:
    start, size = frame.stack_pop_ints(2)
    frame.extend_memory(start, size)
    frame.consume_gas(GAS_SHA3WORD * ((size + 31) // 32), "SHA3: word gas cost")
    data = frame._memory._bytes[start : start + size] if size else b""
    digest = keccak_256(data).digest()
    frame._stack.values.append(int.from_bytes(digest, "big"))


def _storage_load(frame: Any) -> None:
    values = frame._stack.values
    if not values:
        raise InsufficientStack("Wanted 1 stack item, had none")
    slot = values[-1]
    state, address = frame.state, frame.msg.storage_address
    if state.is_storage_warm(address, slot):
        frame.consume_gas(WARM_SLOAD_GAS, "SLOAD")
    else:
        state.mark_storage_warm(address, slot)
        frame.consume_gas(COLD_SLOAD_GAS, "SLOAD")
    values[-1] = state.get_storage(address, slot)


def net_store_price(
    schedule: NetSStoreGasSchedule, original: int, current: int, new: int
) -> tuple[int, int]:
    """Return the gas of a storage write, and the change of the refund it brings.

    original: the value when the transaction began; current: the value now.
    Source: https://eips.ethereum.org/EIPS/eip-2200
    """
    clears = schedule.sstore_clears_schedule
    if current == new:
        return schedule.sload_gas, 0
    if original == current:
        if original == 0:
            return schedule.sstore_set_gas, 0
        return schedule.sstore_reset_gas, 0 if new else clears
    refund = 0
    if original:
        if current == 0:
            refund -= clears
        if new == 0:
            refund += clears
    if original == new:
        full = schedule.sstore_reset_gas if original else schedule.sstore_set_gas
        refund += full - schedule.sload_gas
    return schedule.sload_gas, refund


def _storage_store(schedule: NetSStoreGasSchedule, frame: Any) -> None:
    message, state = frame.msg, frame.state
    if message.is_static:
        raise WriteProtection("Cannot modify state while inside of a STATICCALL")
    if frame._gas_meter.gas_remaining <= SSTORE_STIPEND_GAS:
        raise OutOfGas("SSTORE always fails with no more gas than the call stipend")
    slot, new = frame.stack_pop_ints(2)
    address = message.storage_address
    current = state.get_storage(address, slot)
    original = state.get_storage(address, slot, from_journal=False)
    gas, refund = net_store_price(schedule, original, current, new)
    if not state.is_storage_warm(address, slot):
        state.mark_storage_warm(address, slot)
        gas += COLD_SLOAD_GAS
    frame.consume_gas(gas, "SSTORE")
    if refund:
        frame.refund_gas(refund)
    state.set_storage(address, slot, new)


def _log(topic_count: int, frame: Any) -> None:
    if frame.msg.is_static:
        raise WriteProtection("Cannot modify state while inside of a STATICCALL")
    start, size, *topics = frame.stack_pop_ints(2 + topic_count)
    frame.consume_gas(
        GAS_LOGDATA * size + GAS_LOGTOPIC * topic_count, "Log topic and data gas cost"
    )
    frame.extend_memory(start, size)
    data = bytes(frame._memory._bytes[start : start + size]) if size else b""
    frame.add_log_entry(frame.msg.storage_address, tuple(topics), data)


FRAME_OPERATIONS: dict[Any, Callable[[Any], None]] = {
    memory.mload: _memory_load,
    memory.mstore: _memory_store,
    context.calldataload: _call_data_load,
    context.calldatacopy: _call_data_copy,
    sha3.sha3: _keccak,
    berlin_logic.sload_eip2929: _storage_load,
    BERLIN_OPCODES[SSTORE].logic_fn: partial(_storage_store, GAS_SCHEDULE_EIP2929),
    LONDON_OPCODES[SSTORE].logic_fn: partial(_storage_store, GAS_SCHEDULE_EIP3529),
    **{
        BYZANTIUM_OPCODES[LOG0 + count].logic_fn: partial(_log, count)
        for count in range(5)
    },
}
"""They work on the whole frame, after its static gas was paid."""
