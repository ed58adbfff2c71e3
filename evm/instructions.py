"""Instructions on a call frame that replace py-evm's, with the same effects.

The tables map py-evm's logic functions to ours. If a fork or a tracer has replaced the
function of an opcode, its function is used. Instructions whose price depends on the fork
take it from the fork's gas table; see `priced_instructions`. tests/evm compare each function with
py-evm's. `evm.arithmetic` and `evm.interpreter` contain instructions that need only the
stack or read a property.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from eth.exceptions import (
    InsufficientStack,
    OutOfBoundsRead,
    OutOfGas,
    Revert,
    WriteProtection,
)
from eth.vm.logic import context, flow, memory, sha3, system
from sha3 import keccak_256

from evm.gas import (
    COLD_ACCOUNT_GAS,
    COLD_SLOT_GAS,
    COPY_WORD_GAS,
    KECCAK_WORD_GAS,
    LOG_BYTE_GAS,
    LOG_TOPIC_GAS,
    WARM_GAS,
    StorePrices,
    net_store_price,
    simple_store_price,
    word_count,
)
from evm.stack import address_of

if TYPE_CHECKING:
    from evm.gas_table import GasTable

from_bytes = int.from_bytes


def _memory_load(frame: Any) -> None:
    values = frame.stack
    if not values:
        raise InsufficientStack("Wanted 1 stack item, had none")
    start = values[-1]
    memory = frame.memory
    if start + 32 > len(memory):
        frame.extend_memory(start, 32)
        memory = frame.memory
    values[-1] = from_bytes(memory[start : start + 32], "big")


def _memory_store(frame: Any) -> None:
    values = frame.stack
    if len(values) < 2:
        raise InsufficientStack("Wanted 2 stack items")
    start = values.pop()
    memory = frame.memory
    if start + 32 > len(memory):
        frame.extend_memory(start, 32)
        memory = frame.memory
    memory[start : start + 32] = values.pop().to_bytes(32, "big")


def _memory_store_byte(frame: Any) -> None:
    start, value = frame.stack_pop_ints(2)
    frame.extend_memory(start, 1)
    frame.memory[start] = value & 0xFF


def _memory_copy(frame: Any) -> None:
    target, start, size = frame.stack_pop_ints(3)
    frame.extend_memory(max(start, target), size)
    frame.consume_gas(COPY_WORD_GAS * word_count(size), "MCOPY fee")
    if size:
        memory = frame.memory
        memory[target : target + size] = memory[start : start + size]


def _call_data_load(frame: Any) -> None:
    values = frame.stack
    if not values:
        raise InsufficientStack("Wanted 1 stack item, had none")
    start = values[-1]
    word = frame.msg.data[start : start + 32]
    missing_bits = (32 - len(word)) * 8
    values[-1] = int.from_bytes(word, "big") << missing_bits


def _copy(frame: Any, source: Any, reason: str) -> None:
    """Copy bytes to memory. Bytes beyond the end of the source are zero."""
    target, start, size = frame.stack_pop_ints(3)
    frame.extend_memory(target, size)
    frame.consume_gas(COPY_WORD_GAS * word_count(size), reason)
    if size:
        data = bytes(source[start : start + size])
        frame.memory[target : target + size] = data.ljust(size, b"\x00")


def _call_data_copy(frame: Any) -> None:
    _copy(frame, frame.msg.data, "CALLDATACOPY fee")


def _code_copy(frame: Any) -> None:
    _copy(frame, frame.code.raw, "CODECOPY: word gas cost")


def _return_data_copy(frame: Any) -> None:
    target, start, size = frame.stack_pop_ints(3)
    end = start + size
    if end > len(frame.return_data):
        raise OutOfBoundsRead(
            f"the return data has {len(frame.return_data)} bytes, not {end}"
        )
    frame.extend_memory(target, size)
    frame.consume_gas(COPY_WORD_GAS * word_count(size), "RETURNDATACOPY fee")
    if size:
        frame.memory[target : target + size] = frame.return_data[start:end]


def _keccak(frame: Any) -> None:
    start, size = frame.stack_pop_ints(2)
    frame.extend_memory(start, size)
    frame.consume_gas(KECCAK_WORD_GAS * word_count(size), "SHA3: word gas cost")
    data = frame.memory[start : start + size] if size else b""
    digest = keccak_256(data).digest()
    frame.stack.append(int.from_bytes(digest, "big"))


def _exponentiate(byte_gas: int, frame: Any) -> None:
    base, exponent = frame.stack_pop_ints(2)
    size = (exponent.bit_length() + 7) >> 3
    frame.consume_gas(byte_gas * size, "EXP: exponent bytes")
    frame.stack.append(pow(base, exponent, 2**256))


# Accounts and slots


def _pay_for_account(frame: Any, address: bytes, reason: str) -> None:
    """Charge the access to an account (EIP-2929). Raises: OutOfGas."""
    state = frame.state
    if state.is_address_warm(address):
        frame.consume_gas(WARM_GAS, reason)
    else:
        state.mark_address_warm(address)
        frame.consume_gas(COLD_ACCOUNT_GAS, reason)


def _balance(frame: Any) -> None:
    address = address_of(frame.stack_pop1_int())
    _pay_for_account(frame, address, "BALANCE")
    frame.stack.append(frame.state.get_balance(address))


def _code_size(frame: Any) -> None:
    address = address_of(frame.stack_pop1_int())
    _pay_for_account(frame, address, "EXTCODESIZE")
    frame.stack.append(len(frame.state.get_code(address)))


def _code_hash(frame: Any) -> None:
    address = address_of(frame.stack_pop1_int())
    _pay_for_account(frame, address, "EXTCODEHASH")
    state = frame.state
    is_empty = state.account_is_empty(address)
    frame.stack.append(
        0 if is_empty else from_bytes(state.get_code_hash(address), "big")
    )


def _account_code_copy(frame: Any) -> None:
    address = address_of(frame.stack_pop1_int())
    code = frame.state.get_code(address)
    _copy(frame, code, "EXTCODECOPY: word gas cost")


def _paid_account_code_copy(frame: Any) -> None:
    address = frame.stack[-1] if frame.stack else 0
    _account_code_copy(frame)
    _pay_for_account(frame, address_of(address), "EXTCODECOPY")


def _storage_load(frame: Any) -> None:
    values = frame.stack
    if not values:
        raise InsufficientStack("Wanted 1 stack item, had none")
    slot = values[-1]
    state, address = frame.state, frame.msg.storage_address
    if state.is_storage_warm(address, slot):
        frame.consume_gas(WARM_GAS, "SLOAD")
    else:
        state.mark_storage_warm(address, slot)
        frame.consume_gas(COLD_SLOT_GAS, "SLOAD")
    values[-1] = state.get_storage(address, slot)


def _write_protection() -> WriteProtection:
    return WriteProtection("Cannot modify state while inside of a STATICCALL")


def _storage_store(prices: StorePrices, frame: Any) -> None:
    message, state = frame.msg, frame.state
    if message.is_static:
        raise _write_protection()
    if frame.gas_remaining <= prices.sentry:
        raise OutOfGas("SSTORE always fails with no more gas than the call stipend")
    values = frame.stack
    if len(values) < 2:
        raise InsufficientStack("Wanted 2 stack items")
    slot, new = values.pop(), values.pop()
    address = message.storage_address
    current = state.get_storage(address, slot)
    original = state.get_storage(address, slot, from_journal=False)
    gas, refund = net_store_price(prices, original, current, new)
    if prices.cold and not state.is_storage_warm(address, slot):
        state.mark_storage_warm(address, slot)
        gas += prices.cold
    frame.consume_gas(gas, "SSTORE")
    if refund:
        frame.refund_gas(refund)
    state.set_storage(address, slot, new)


def _simple_storage_store(frame: Any) -> None:
    if frame.msg.is_static:
        raise _write_protection()
    slot, new = frame.stack_pop_ints(2)
    state, address = frame.state, frame.msg.storage_address
    gas, refund = simple_store_price(state.get_storage(address, slot), new)
    frame.consume_gas(gas, "SSTORE")
    if refund:
        frame.refund_gas(refund)
    state.set_storage(address, slot, new)


def _log(topic_count: int, frame: Any) -> None:
    if frame.msg.is_static:
        raise _write_protection()
    start, size, *topics = frame.stack_pop_ints(2 + topic_count)
    frame.consume_gas(
        LOG_BYTE_GAS * size + LOG_TOPIC_GAS * topic_count, "Log topic and data gas cost"
    )
    frame.extend_memory(start, size)
    data = bytes(frame.memory[start : start + size]) if size else b""
    frame.add_log_entry(frame.msg.storage_address, tuple(topics), data)


def _return(frame: Any) -> None:
    start, size = frame.stack_pop_ints(2)
    frame.extend_memory(start, size)
    frame.output = bytes(frame.memory[start : start + size]) if size else b""


def _revert(frame: Any) -> None:
    _return(frame)
    frame.fail(Revert(frame.output))


def _program_counter(frame: Any) -> None:
    frame.stack_push_int(frame.code.program_counter - 1)


FRAME_OPERATIONS: dict[Any, Callable[[Any], None]] = {
    memory.mload: _memory_load,
    memory.mstore: _memory_store,
    memory.mstore8: _memory_store_byte,
    memory.mcopy: _memory_copy,
    context.calldataload: _call_data_load,
    context.calldatacopy: _call_data_copy,
    context.codecopy: _code_copy,
    context.returndatacopy: _return_data_copy,
    context.extcodecopy: _account_code_copy,
    flow.program_counter: _program_counter,
    sha3.sha3: _keccak,
}
"""py-evm's logic function → ours, which is called with the frame after the constant gas
was charged."""


def priced_instructions(table: GasTable) -> dict[str, Callable[[Any], None]]:
    """Return functions for instructions with the prices of a fork, by mnemonic.

    They replace py-evm's, as far as the fork has the instruction. They are called with
    the frame after `GasTable.charged_first` was charged.
    """
    instructions: dict[str, Callable[[Any], None]] = {
        "EXP": partial(_exponentiate, table.exp_byte),
        "SSTORE": _simple_storage_store,
        **{f"LOG{count}": partial(_log, count) for count in range(5)},
    }
    if table.store is not None:
        instructions["SSTORE"] = partial(_storage_store, table.store)
    if table.has_access_prices:
        instructions |= {
            "BALANCE": _balance,
            "EXTCODESIZE": _code_size,
            "EXTCODEHASH": _code_hash,
            "EXTCODECOPY": _paid_account_code_copy,
            "SLOAD": _storage_load,
        }
    return instructions


ENDINGS: dict[Any, Callable[[Any], None]] = {
    system.return_op: _return,
    system.revert: _revert,
}
"""py-evm's logic function → ours, which ends the frame."""
