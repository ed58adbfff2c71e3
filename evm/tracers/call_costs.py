"""The cost of calls, storage writes and self-destructions.

Sources: go-ethereum, core/vm/{gas,gas_table,operations_acl}.go;
https://eips.ethereum.org/EIPS/eip-150 · eip-161 · eip-2200 · eip-2929 · eip-7702
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evm.delegations import delegate_of
from evm.gas import (
    COLD_ACCOUNT_GAS,
    NEW_ACCOUNT_GAS,
    SELFDESTRUCT_REFUND_GAS,
    VALUE_GAS,
    WARM_GAS,
    StorePrices,
    net_store_price,
    simple_store_price,
)
from evm.stack import address_of
from evm.tracers.costs import (
    MAXIMUM,
    Cost,
    OutOfGas,
    Values,
    forbid_in_static,
    memory_cost,
    memory_end,
)

Refund = Callable[[Any, Values], int]
"""(frame, stack) → the instruction's change of the refund counter."""


# Calls


def _gas_given(asked: int, gas: int, other: int, keeps_a_64th: bool) -> int:
    """Return the gas passed to a call. other: the rest of the call's cost.

    If the gas does not cover `other`, geth's unsigned subtraction wraps around. The
    call fails anyway, but the reported cost depends on it.
    """
    if keeps_a_64th:
        left = (gas - other) & MAXIMUM
        most = left - left // 64
        if asked > most:
            return most
    if asked > MAXIMUM:
        raise OutOfGas("gas uint64 overflow")
    return asked


def _require(gas: int, cost: int) -> None:
    """Raise geth's error if a part of the cost exceeds the remaining gas."""
    if gas < cost:
        raise OutOfGas("out of gas")


IntrinsicCost = Callable[[Any, bytes, int, int, int], int]
"""(frame, account, value, memory size in bytes, remaining gas) → cost."""


def intrinsic_cost(
    *, makes_account: bool, clears_empty_accounts: bool, has_delegations: bool
) -> IntrinsicCost:
    """Return a cost function for a call's memory, transfer and new account."""

    def cost(frame: Any, address: bytes, value: int, end: int, gas: int) -> int:
        price = memory_cost(frame, end) + (VALUE_GAS if value else 0)
        if makes_account:
            _require(gas, price)
            state = frame.state
            if clears_empty_accounts:
                is_new = bool(value) and state.account_is_empty(address)
            else:
                is_new = not state.account_exists(address)
            price += NEW_ACCOUNT_GAS if is_new else 0
        if has_delegations:
            _require(gas, price)
        return price

    return cost


def _memory_end(values: Values, shift: int) -> int:
    """Return the bytes of memory that a call's input and output ask for."""
    given = memory_end(values[-3 - shift], values[-4 - shift])
    return max(given, memory_end(values[-5 - shift], values[-6 - shift]))


def call_cost(
    intrinsic: IntrinsicCost,
    *,
    has_value: bool,
    makes_account: bool,
    keeps_a_64th: bool,
    has_access_lists: bool,
    has_delegations: bool,
) -> Cost:
    """Return the cost function of CALL, CALLCODE, DELEGATECALL or STATICCALL.

    geth charges in steps, and stops at the first one that exceeds the remaining gas:
    the account's first access; memory and transfer (in CALL; in all from EIP-7702 on);
    a new account and the access to the delegate (both from EIP-7702 on).

    intrinsic: cost of memory, transfer and a new account.
    has_value: whether the opcode has a value operand (CALL and CALLCODE).
    makes_account: whether the opcode is CALL, which may create the account.
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        end = _memory_end(values, 1 if has_value else 0)
        value, address = values[-3] if has_value else 0, address_of(values[-2])
        writes = makes_account and bool(value)
        if writes and has_delegations:
            forbid_in_static(frame)
        cold = access_cost(frame, address, gas) if has_access_lists else 0
        gas -= cold
        if writes:
            forbid_in_static(frame)
        other = intrinsic(frame, address, value, end, gas)
        delegate = delegate_cost(frame, address) if has_delegations else 0
        _require(gas, delegate)
        given = _gas_given(values[-1], gas - delegate, other, keeps_a_64th)
        total = cold + delegate + other + given
        if total > MAXIMUM:
            raise OutOfGas("gas uint64 overflow")
        return total

    return cost


def access_cost(frame: Any, address: bytes, gas: int) -> int:
    """Return a call's surcharge for the first access to an account."""
    if frame.state.is_address_warm(address):
        return 0
    cold = COLD_ACCOUNT_GAS - WARM_GAS
    _require(gas, cold)
    return cold


def delegate_cost(frame: Any, address: bytes) -> int:
    """Return a call's price for the access to the called account's delegate."""
    delegate = delegate_of(frame.state.get_code(address))
    if delegate is None:
        return 0
    warm = delegate == address or frame.state.is_address_warm(delegate)
    return WARM_GAS if warm else COLD_ACCOUNT_GAS


# Writes to storage


def _simple_price(frame: Any, values: Values) -> tuple[int, int]:
    current = frame.state.get_storage(frame.msg.storage_address, values[-1])
    return simple_store_price(current, values[-2])


def simple_store_cost(frame: Any, values: Values, gas: int) -> int:
    """Return SSTORE's cost in forks where it depends on the present value only."""
    forbid_in_static(frame)
    return _simple_price(frame, values)[0]


def simple_store_refund(frame: Any, values: Values) -> int:
    """Return SSTORE's refund in forks where it depends on the present value only."""
    return _simple_price(frame, values)[1]


def _net_price(prices: StorePrices, frame: Any, values: Values) -> tuple[int, int]:
    address, slot, get = frame.msg.storage_address, values[-1], frame.state.get_storage
    original = get(address, slot, from_journal=False)
    return net_store_price(prices, original, get(address, slot), values[-2])


def net_store_cost(prices: StorePrices) -> Cost:
    """Return the cost function of SSTORE with net prices."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        forbid_in_static(frame)
        if prices.sentry and gas <= prices.sentry:
            raise OutOfGas("not enough gas for reentrancy sentry")
        price, _ = _net_price(prices, frame, values)
        if prices.cold and not frame.state.is_storage_warm(
            frame.msg.storage_address, values[-1]
        ):
            price += prices.cold
        return price

    return cost


def net_store_refund(prices: StorePrices) -> Refund:
    """Return the refund function of SSTORE with net prices. Refunds may be negative."""

    def refund(frame: Any, values: Values) -> int:
        return _net_price(prices, frame, values)[1]

    return refund


# Self-destruction


def selfdestruct_cost(
    *,
    base: int,
    makes_account: bool,
    clears_empty_accounts: bool,
    has_access_lists: bool,
) -> Cost:
    """Return the function for SELFDESTRUCT's variable cost.

    base: the part of the opcode's price that geth charges with the variable cost.
    makes_account: whether a new beneficiary costs gas (from EIP-150 on).
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        forbid_in_static(frame)
        if not makes_account:
            return base
        state, beneficiary = frame.state, address_of(values[-1])
        price = base
        if has_access_lists and not state.is_address_warm(beneficiary):
            price += COLD_ACCOUNT_GAS
            _require(gas, price)
        if clears_empty_accounts:
            is_new = state.account_is_empty(beneficiary) and state.get_balance(
                frame.msg.storage_address
            )
        else:
            is_new = not state.account_exists(beneficiary)
        return price + (NEW_ACCOUNT_GAS if is_new else 0)

    return cost


def selfdestruct_refund(frame: Any, values: Values) -> int:
    """Return the refund for a contract's first SELFDESTRUCT in a transaction."""
    destroyed = frame.msg.storage_address in frame.state.stepping.destroyed
    return 0 if destroyed else SELFDESTRUCT_REFUND_GAS
