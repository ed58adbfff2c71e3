"""Instructions that read accounts, and those that read hashes by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.addresses import address_of
from evm.frame_errors import StackUnderflow
from evm.instructions.memory import write
from evm.memory import memory_cost, memory_end
from evm.rules.prices import word_count

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.frame import Frame

from_bytes = int.from_bytes


def access_cost(frame: Frame) -> int:
    """Return the surcharge for the first access to the account on top of the stack.

    Source: https://eips.ethereum.org/EIPS/eip-2929
    """
    prices = frame.prices
    if not prices.cold_account:
        return 0
    is_warm = frame.state.is_address_warm(address_of(frame.stack[-1]))
    return 0 if is_warm else prices.cold_account - prices.warm


def code_access_cost(frame: Frame) -> int:
    """Return the gas of EXTCODESIZE beyond its constant price (EIP-2929, EIP-8038)."""
    return access_cost(frame) + frame.prices.code_read


def _pay_for_account(frame: Frame, more: int = 0) -> Address:
    """Charge the access to the account on top of the stack, and return its address.

    more: gas that is charged with it.
    """
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    address = address_of(values[-1])
    prices = frame.prices
    if prices.cold_account and not frame.state.is_address_warm(address):
        frame.charge(prices.cold_account - prices.warm + more)
        frame.state.world.mark_address_warm(address)
    elif more:
        frame.charge(more)
    return address


def balance(frame: Frame) -> None:
    """BALANCE: push the balance of an account in wei (EIP-150, EIP-1884, EIP-2929)."""
    # STACK, GAS
    address = _pay_for_account(frame)
    # OPERATION
    frame.stack[-1] = frame.state.get_balance(address)
    # PROGRAM COUNTER
    frame.pc += 1


def extcodesize(frame: Frame) -> None:
    """EXTCODESIZE: push the size of an account's code (EIP-150, EIP-2929, EIP-8038)."""
    # STACK, GAS
    address = _pay_for_account(frame, frame.prices.code_read)
    # OPERATION
    frame.stack[-1] = len(frame.state.get_code(address))
    # PROGRAM COUNTER
    frame.pc += 1


def extcodehash(frame: Frame) -> None:
    """EXTCODEHASH: push the hash of an account's code, 0 without account (EIP-1052)."""
    # STACK, GAS
    address = _pay_for_account(frame)
    # OPERATION
    world = frame.state.world
    is_empty = world.account_is_empty(address)
    frame.stack[-1] = 0 if is_empty else from_bytes(world.get_code_hash(address), "big")
    # PROGRAM COUNTER
    frame.pc += 1


def extcodecopy_cost(frame: Frame) -> int:
    """Return the gas of EXTCODECOPY beyond its constant price."""
    target, _, size = frame.stack[-2:-5:-1]
    memory = memory_cost(frame.memory, memory_end(target, size))
    return memory + frame.prices.copy_word * word_count(size) + code_access_cost(frame)


def extcodecopy(frame: Frame) -> None:
    """EXTCODECOPY: copy a part of an account's code (EIP-150, EIP-2929, EIP-8038)."""
    # STACK
    values = frame.stack
    if len(values) < 4:
        raise StackUnderflow(len(values), 4)
    # GAS
    frame.charge(extcodecopy_cost(frame))
    # OPERATION
    address, world = address_of(values.pop()), frame.state.world
    if frame.prices.cold_account:
        world.mark_address_warm(address)
    target, start, size = values.pop(), values.pop(), values.pop()
    code = world.get_code(address)
    if size:
        write(frame, target, code[start : start + size], size)
    # PROGRAM COUNTER
    frame.pc += 1


def blockhash(frame: Frame) -> None:
    """BLOCKHASH: push the hash of one of the last 256 blocks, 0 for other numbers."""
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    # OPERATION
    values[-1] = from_bytes(frame.state.block.ancestor_hash(values[-1]), "big")
    # PROGRAM COUNTER
    frame.pc += 1


def blobhash(frame: Frame) -> None:
    """BLOBHASH: push the hash of one of the transaction's blobs (EIP-4844)."""
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    # OPERATION
    hashes, index = frame.transaction.blob_versioned_hashes, values[-1]
    values[-1] = from_bytes(hashes[index], "big") if index < len(hashes) else 0
    # PROGRAM COUNTER
    frame.pc += 1
