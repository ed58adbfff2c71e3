"""The cost of calls, writes to storage and self-destructions, which forks changed most.

Sources: go-ethereum, core/vm/{gas,gas_table,operations_acl}.go;
https://eips.ethereum.org/EIPS/eip-150 · eip-161 · eip-2200 · eip-2929 · eip-7702
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eth.vm.logic.storage import NetSStoreGasSchedule

from nodeapi.evm.delegations import delegate_of
from nodeapi.evm.executor import SELFDESTRUCT_REFUND_GAS
from nodeapi.evm.instructions import SSTORE_STIPEND_GAS, net_store_price
from nodeapi.tracers.costs import (
    COLD_ACCOUNT_GAS,
    COLD_SLOT_GAS,
    MAXIMUM,
    NEW_ACCOUNT_GAS,
    VALUE_GAS,
    WARM_GAS,
    Cost,
    OutOfGas,
    Values,
    address_of,
    forbid_in_static,
    memory_cost,
    memory_end,
)

Refund = Callable[[Any, Values], int]
"""(frame, stack) → what the instruction adds to the refund counter."""

SET_GAS, RESET_GAS, CLEAR_REFUND_GAS = 20_000, 5000, 15_000
SELFDESTRUCT_GAS = 5000


# Calls


def _gas_given(asked: int, gas: int, other: int, keeps_a_64th: bool) -> int:
    """Return the gas handed to a call, the rest of whose cost is `other`.

    Where there is not even enough for that, geth's unsigned difference wraps around:
    the call is out of gas all the same, and the wrap decides what that costs.
    """
    if keeps_a_64th:
        left = (gas - other) & MAXIMUM
        most = left - left // 64
        if asked > most:
            return most
    if asked > MAXIMUM:
        raise OutOfGas("gas uint64 overflow")
    return asked


def call_cost(
    *,
    has_value: bool,
    makes_account: bool,
    keeps_a_64th: bool,
    clears_empty_accounts: bool,
    access: Callable[[Any, bytes, int], int] | None,
) -> Cost:
    """Return the cost of CALL (`makes_account`), CALLCODE (`has_value`) and the others.

    access: cost of the account's first access and of its delegate, from Berlin on.
    """
    shift = 1 if has_value else 0

    def memory(frame: Any, values: Values) -> int:
        given = memory_end(values[-3 - shift], values[-4 - shift])
        return max(given, memory_end(values[-5 - shift], values[-6 - shift]))

    def cost(frame: Any, values: Values, gas: int) -> int:
        end = memory(frame, values)
        value = values[-3] if has_value else 0
        if makes_account and value:
            forbid_in_static(frame)
        address = address_of(values[-2])
        accessed = access(frame, address, gas) if access else 0
        other = VALUE_GAS if value else 0
        if makes_account:
            state = frame.state
            if clears_empty_accounts:
                is_new = bool(value) and state.account_is_empty(address)
            else:
                is_new = not state.account_exists(address)
            other += NEW_ACCOUNT_GAS if is_new else 0
        other += memory_cost(frame, end)
        other += _gas_given(values[-1], gas - accessed, other, keeps_a_64th)
        if other > MAXIMUM:
            raise OutOfGas("gas uint64 overflow")
        return accessed + other

    return cost


def access_cost(frame: Any, address: bytes, gas: int) -> int:
    """Return what a call pays for an account's first access, beside the warm price."""
    if frame.state.is_address_warm(address):
        return 0
    cold = COLD_ACCOUNT_GAS - WARM_GAS
    if gas < cold:
        raise OutOfGas("out of gas")
    return cold


def delegated_access_cost(frame: Any, address: bytes, gas: int) -> int:
    """Return the same where the account may delegate to another one's code."""
    cost = access_cost(frame, address, gas)
    delegate = delegate_of(frame.state.get_code(address))
    if delegate is not None:
        warm = delegate == address or frame.state.is_address_warm(delegate)
        cost += WARM_GAS if warm else COLD_ACCOUNT_GAS
        if gas < cost:
            raise OutOfGas("out of gas")
    return cost


# Writes to storage


def simple_store_cost(frame: Any, values: Values, gas: int) -> int:
    """Return SSTORE's cost where it depends on the present value alone."""
    forbid_in_static(frame)
    current = frame.state.get_storage(frame.msg.storage_address, values[-1])
    return SET_GAS if not current and values[-2] else RESET_GAS


def simple_store_refund(frame: Any, values: Values) -> int:
    """Return what that brings."""
    current = frame.state.get_storage(frame.msg.storage_address, values[-1])
    return CLEAR_REFUND_GAS if current and not values[-2] else 0


def _net_price(
    schedule: NetSStoreGasSchedule, frame: Any, values: Values
) -> tuple[int, int]:
    address, slot, get = frame.msg.storage_address, values[-1], frame.state.get_storage
    original = get(address, slot, from_journal=False)
    return net_store_price(schedule, original, get(address, slot), values[-2])


def net_store_cost(
    schedule: NetSStoreGasSchedule, *, has_sentry: bool, has_access_lists: bool
) -> Cost:
    """Return SSTORE's cost where it depends on the transaction's start as well."""

    def cost(frame: Any, values: Values, gas: int) -> int:
        forbid_in_static(frame)
        if has_sentry and gas <= SSTORE_STIPEND_GAS:
            raise OutOfGas("not enough gas for reentrancy sentry")
        price, _ = _net_price(schedule, frame, values)
        if has_access_lists and not frame.state.is_storage_warm(
            frame.msg.storage_address, values[-1]
        ):
            price += COLD_SLOT_GAS
        return price

    return cost


def net_store_refund(schedule: NetSStoreGasSchedule) -> Refund:
    """Return what that brings; it may be less than nothing."""

    def refund(frame: Any, values: Values) -> int:
        return _net_price(schedule, frame, values)[1]

    return refund


# Self-destruction


def selfdestruct_cost(
    *, makes_account: bool, clears_empty_accounts: bool, has_access_lists: bool
) -> Cost:
    """Return SELFDESTRUCT's cost above its constant part.

    makes_account: whether an heir that is new costs, from EIP-150 on.
    """

    def cost(frame: Any, values: Values, gas: int) -> int:
        forbid_in_static(frame)
        if not makes_account:
            return 0
        state, heir = frame.state, address_of(values[-1])
        price = 0 if has_access_lists else SELFDESTRUCT_GAS
        if has_access_lists and not state.is_address_warm(heir):
            price += COLD_ACCOUNT_GAS
        if clears_empty_accounts:
            is_new = state.account_is_empty(heir) and state.get_balance(
                frame.msg.storage_address
            )
        else:
            is_new = not state.account_exists(heir)
        return price + (NEW_ACCOUNT_GAS if is_new else 0)

    return cost


def selfdestruct_refund(frame: Any, values: Values) -> int:
    """Return what a contract's first SELFDESTRUCT in a transaction brought once."""
    destroyed = frame.msg.storage_address in frame.state.stepping.destroyed
    return 0 if destroyed else SELFDESTRUCT_REFUND_GAS
