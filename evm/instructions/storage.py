"""Instructions on a contract's storage.

SSTORE's price has had four forms: of the present value only (Frontier to Byzantium, and
Petersburg); net of earlier writes in the transaction (Constantinople, EIP-1283); the same
with a minimum of gas (Istanbul, EIP-2200); with a surcharge for the first access (Berlin,
EIP-2929) and a smaller refund (London, EIP-3529). Each fork's numbers are in
`evm.rules.forks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.frame_errors import OutOfGas, StackUnderflow, WriteProtection

if TYPE_CHECKING:
    from evm.frame import Frame


def sload_cost(frame: Frame) -> int:
    """Return the gas of SLOAD beyond its constant price (EIP-2929)."""
    prices = frame.prices
    if not prices.cold_slot:
        return 0
    slot = frame.stack[-1]
    is_warm = frame.state.is_storage_warm(frame.message.storage_address, slot)
    return prices.warm if is_warm else prices.cold_slot


def sload(frame: Frame) -> None:
    """SLOAD: push the value of a slot (EIP-150, EIP-1884, EIP-2929)."""
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    slot, world = values[-1], frame.state.world
    address, prices = frame.message.storage_address, frame.prices
    # GAS
    if prices.cold_slot:
        if world.is_storage_warm(address, slot):
            frame.charge(prices.warm)
        else:
            frame.charge(prices.cold_slot)
            world.mark_storage_warm(address, slot)
    # OPERATION
    values[-1] = world.get_storage(address, slot)
    # PROGRAM COUNTER
    frame.pc += 1


def _store_price(frame: Frame) -> tuple[int, int]:
    """Return the gas of SSTORE, and its change of the refund counter.

    The surcharge for the first access is not included.
    """
    world, address = frame.state.world, frame.message.storage_address
    slot, new = frame.stack[-1:-3:-1]
    current, prices = world.get_storage(address, slot), frame.prices.store
    if prices is None:
        every = frame.prices
        gas = every.store_set if new and not current else every.store_reset
        return gas, every.store_clear_refund if current and not new else 0
    if current == new:
        return prices.unchanged, 0
    original = world.original_storage(address, slot)
    clears = prices.clear_refund
    if original == current:
        if original == 0:
            return prices.set, 0
        return prices.reset, 0 if new else clears
    refund = 0
    if original:
        if current == 0:
            refund -= clears
        if new == 0:
            refund += clears
    if original == new:
        full = prices.reset if original else prices.set
        refund += full - prices.unchanged
    return prices.unchanged, refund


def _first_access(frame: Frame) -> int:
    """Return the surcharge for the first access to the slot (EIP-2929)."""
    cold, slot = frame.prices.cold_slot, frame.stack[-1]
    if not cold or frame.state.is_storage_warm(frame.message.storage_address, slot):
        return 0
    return cold


def _check_store(frame: Frame) -> None:
    """Raise OutOfGas if a slot must not be written, whatever it costs."""
    if frame.message.is_static:
        raise OutOfGas("write protection")
    prices = frame.prices.store
    if prices is not None and prices.sentry and frame.gas_remaining <= prices.sentry:
        raise OutOfGas("not enough gas for reentrancy sentry")


def sstore_cost(frame: Frame) -> int:
    """Return the gas of SSTORE."""
    _check_store(frame)
    return _store_price(frame)[0] + _first_access(frame)


def sstore_refund(frame: Frame) -> int:
    """Return SSTORE's change of the refund counter, which may be negative."""
    return _store_price(frame)[1]


def sstore(frame: Frame) -> None:
    """SSTORE: write a slot (EIP-1283, EIP-2200, EIP-2929, EIP-3529)."""
    # STACK
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    # GAS
    _check_store(frame)
    gas, refund = _store_price(frame)
    cold = _first_access(frame)
    frame.charge(gas + cold)
    # OPERATION
    world, address = frame.state.world, frame.message.storage_address
    slot = values.pop()
    if cold:
        world.mark_storage_warm(address, slot)
    if refund:
        frame.transaction.effects.refund += refund
    world.set_storage(address, slot, values.pop())
    # PROGRAM COUNTER
    frame.pc += 1


def tload(frame: Frame) -> None:
    """TLOAD: push the value of a transient slot (EIP-1153)."""
    # STACK
    values = frame.stack
    if not values:
        raise StackUnderflow(0, 1)
    # OPERATION
    address = frame.message.storage_address
    values[-1] = frame.state.world.get_transient_storage(address, values[-1])
    # PROGRAM COUNTER
    frame.pc += 1


def tstore(frame: Frame) -> None:
    """TSTORE: write a transient slot (EIP-1153)."""
    # STACK
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    # OPERATION
    if frame.message.is_static:
        raise WriteProtection
    address, slot = frame.message.storage_address, values.pop()
    frame.state.world.set_transient_storage(address, slot, values.pop())
    # PROGRAM COUNTER
    frame.pc += 1
