"""CREATE and CREATE2.

Sources: https://eips.ethereum.org/EIPS/eip-150 · eip-684 · eip-1014 · eip-2929 · eip-3860
· eip-8037
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.addresses import contract_address, salted_contract_address
from evm.frame_errors import OutOfGas, StackUnderflow
from evm.instructions.calls import BALANCE, DEPTH
from evm.memory import range_cost
from evm.message import Message
from evm.opcodes import MAX_DEPTH
from evm.rules.prices import word_count
from evm.transactions import CREATE_ADDRESS, MAX_NONCE

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.frame import Frame

COLLISION = "contract address collision"
NONCE = "nonce uint64 overflow"


def _init_code_cost(frame: Frame, word_gas: int) -> int:
    """Return the gas of memory and words of init code, whose limit is checked.

    word_gas: price of each word.
    """
    if frame.message.is_static:
        raise OutOfGas("write protection")
    start, size = frame.stack[-2:-4:-1]
    memory, limit = range_cost(frame.memory, start, size), frame.fork.max_init_code_size
    if limit is not None and size > limit:
        raise OutOfGas(f"max initcode size exceeded: code size {size} limit {limit}")
    return memory + word_gas * word_count(size)


def create_cost(frame: Frame) -> int:
    """Return the gas of CREATE beyond its constant price, without the init code's."""
    return _init_code_cost(frame, frame.prices.init_code_word)


def create2_cost(frame: Frame) -> int:
    """Return the gas of CREATE2 beyond its constant price, without the init code's."""
    prices = frame.prices
    return _init_code_cost(frame, prices.init_code_word + prices.keccak_word)


def create(frame: Frame) -> None:
    """CREATE: create a contract, whose address depends on the creator's nonce."""
    # STACK
    values = frame.stack
    if len(values) < 3:
        raise StackUnderflow(len(values), 3)
    # GAS
    frame.charge(create_cost(frame))
    # OPERATION
    _create(frame, "CREATE")
    # PROGRAM COUNTER
    frame.pc += 1


def create2(frame: Frame) -> None:
    """CREATE2: create a contract, whose address depends on its init code (EIP-1014)."""
    # STACK
    values = frame.stack
    if len(values) < 4:
        raise StackUnderflow(len(values), 4)
    # GAS
    frame.charge(create2_cost(frame))
    # OPERATION
    _create(frame, "CREATE2")
    # PROGRAM COUNTER
    frame.pc += 1


def _create(frame: Frame, name: str) -> None:
    """Run a creation that was paid for, and push the contract's address or 0."""
    own, values, world = frame.message, frame.stack, frame.state.world
    creator = own.storage_address
    start, size = values[-2:-4:-1]
    code = bytes(frame.memory[start : start + size]).ljust(size, b"\x00")
    nonce = world.get_nonce(creator)
    if name == "CREATE2":
        address = salted_contract_address(creator, values[-4], code)
    else:
        address = contract_address(creator, nonce)
    value, state_prices, state_gas = values[-1], frame.prices.state, 0
    if state_prices is not None:
        # geth's tracers know it, even if the creation can't begin.
        frame.note_creation(address)
    error = _refusal(frame, value, nonce)
    if state_prices and error is None and world.account_is_empty(address):
        state_gas = state_prices.account
        frame.charge_state(state_gas)
    frame.grow(start + size if size else 0)
    del values[-4 if name == "CREATE2" else -3 :]
    frame.return_data = b""
    given = frame.gas_remaining
    if frame.fork.keeps_a_64th:
        given -= given // 64
    message = _message(frame, given, value, code, address)
    if error is not None:
        values.append(0)
        if state_prices is None:
            # From Amsterdam on, it is the creator's own frame that checks this.
            frame.refuse_child(name, message, error, 0)
        return
    frame.gas_remaining -= given
    world.set_nonce(creator, nonce + 1)
    if frame.prices.cold_account:
        world.mark_address_warm(address)
    if world.is_occupied(address, by_storage=frame.fork.storage_occupies):
        values.append(0)
        frame.refuse_child(name, message, COLLISION, given)
        return
    child = frame.run_child(name, message)
    if child.error is None:
        values.append(int.from_bytes(address, "big"))
    else:
        values.append(0)
        frame.return_data = child.output
    frame.gas_remaining += child.gas_remaining
    if state_prices is not None:
        frame.absorb_state(child)
        if child.error is not None:
            frame.return_state(state_gas)


def _message(
    frame: Frame, gas: int, value: int, code: bytes, address: Address
) -> Message:
    own = frame.message
    return Message(
        gas,
        CREATE_ADDRESS,
        own.storage_address,
        value,
        b"",
        code,
        own.depth + 1,
        address,
    )


def _refusal(frame: Frame, value: int, nonce: int) -> str | None:
    """Return geth's text for a creation that can't begin: that of the first failed check."""
    if frame.message.depth >= MAX_DEPTH:
        return DEPTH
    if frame.state.get_balance(frame.message.storage_address) < value:
        return BALANCE
    return NONCE if nonce >= MAX_NONCE else None
