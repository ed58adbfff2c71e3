"""Instructions on a contract's storage.

SSTORE's price has had four forms: of the present value only (Frontier to Byzantium, and
Petersburg); net of earlier writes in the transaction (Constantinople, EIP-1283); the same
with a minimum of gas (Istanbul, EIP-2200); with a surcharge for the first access (Berlin,
EIP-2929) and a smaller refund (London, EIP-3529). From Amsterdam on, a slot that was zero
costs state gas (EIP-8037). Each fork's numbers are in `evm.rules.forks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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


class StorePrice(NamedTuple):
    """What an SSTORE costs, without the surcharge for the first access."""

    gas: int
    refund: int = 0
    """Change of the refund counter."""
    state: int = 0
    """1: the slot's state gas is charged. -1: it is returned."""


def _store_price(frame: Frame) -> StorePrice:
    """Return what an SSTORE costs."""
    world, address = frame.state.world, frame.message.storage_address
    slot, new = frame.stack[-1:-3:-1]
    current, prices = world.get_storage(address, slot), frame.prices.store
    if prices is None:
        every = frame.prices
        gas = every.store_set if new and not current else every.store_reset
        clears = bool(current and not new)
        return StorePrice(gas, every.store_clear_refund if clears else 0)
    if current == new:
        return StorePrice(prices.unchanged)
    original = world.original_storage(address, slot)
    if original == current:
        if original == 0:
            return StorePrice(prices.set, state=1)
        return StorePrice(prices.reset, 0 if new else prices.clear_refund)
    refund = state = 0
    if original:
        if current == 0:
            refund -= prices.clear_refund
        if new == 0:
            refund += prices.clear_refund
    if original == new:
        full = prices.reset if original else prices.set
        refund += full - prices.unchanged
        state = 0 if original else -1
    return StorePrice(prices.unchanged, refund, state)


def _first_access(frame: Frame) -> int:
    """Return the surcharge for the first access to the slot (EIP-2929)."""
    prices, slot = frame.prices.store, frame.stack[-1]
    if prices is None or not prices.cold:
        return 0
    is_warm = frame.state.is_storage_warm(frame.message.storage_address, slot)
    return 0 if is_warm else prices.cold


def _check_store(frame: Frame, cold: int) -> None:
    """Raise OutOfGas if a slot must not be written, whatever its value is.

    cold: the surcharge for the first access.
    """
    if frame.message.is_static:
        raise OutOfGas("write protection")
    prices, gas_left = frame.prices.store, frame.gas_remaining
    if prices is None:
        return
    if prices.sentry and gas_left <= prices.sentry:
        raise OutOfGas("not enough gas for reentrancy sentry")
    if frame.prices.state is not None and gas_left < prices.unchanged + cold:
        # The slot is not read. The block's access list shows it (EIP-7928).
        raise OutOfGas("not enough gas for slot access")


def sstore_cost(frame: Frame) -> int:
    """Return the gas of SSTORE."""
    cold = _first_access(frame)
    _check_store(frame, cold)
    return _store_price(frame).gas + cold


def sstore_refund(frame: Frame) -> int:
    """Return SSTORE's change of the refund counter, which may be negative."""
    return _store_price(frame).refund


def sstore_state_cost(frame: Frame) -> int:
    """Return the state gas of SSTORE."""
    prices = frame.prices.state
    return prices.slot if prices and _store_price(frame).state > 0 else 0


def sstore(frame: Frame) -> None:
    """SSTORE: write a slot (EIP-1283, EIP-2200, EIP-2929, EIP-3529, EIP-8037)."""
    # STACK
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    # GAS
    cold = _first_access(frame)
    _check_store(frame, cold)
    gas, refund, state = _store_price(frame)
    frame.charge(gas + cold)
    if state and frame.prices.state is not None:
        if state > 0:
            frame.charge_state(frame.prices.state.slot)
        else:
            frame.return_state(frame.prices.state.slot)
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
