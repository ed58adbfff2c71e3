"""The price list of each fork: what every opcode needs and costs there."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from eth.vm.forks.berlin.logic import GAS_SCHEDULE_EIP2929
from eth.vm.forks.constantinople.storage import GAS_SCHEDULE_EIP1283
from eth.vm.forks.istanbul.storage import GAS_SCHEDULE_EIP2200
from eth.vm.forks.london.storage import GAS_SCHEDULE_EIP3529

from nodeapi.evm.chain_config import LADDER
from nodeapi.tracers import call_costs, costs
from nodeapi.tracers.opcodes import NUMBERS, OPCODES, STACK_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nodeapi.evm.forks import Fork
    from nodeapi.tracers.call_costs import Refund
    from nodeapi.tracers.costs import Cost

_FORK_NAMES = tuple(LADDER)

_REPRICED: dict[str, dict[str, int]] = {
    "tangerine_whistle": {
        "BALANCE": 400,
        "EXTCODESIZE": 700,
        "EXTCODECOPY": 700,
        "SLOAD": 200,
        "CALL": 700,
        "CALLCODE": 700,
        "DELEGATECALL": 700,
    },
    "istanbul": {"BALANCE": 700, "SLOAD": 800, "EXTCODEHASH": 700},
    "berlin": {
        "BALANCE": costs.WARM_GAS,
        "EXTCODESIZE": costs.WARM_GAS,
        "EXTCODECOPY": costs.WARM_GAS,
        "EXTCODEHASH": costs.WARM_GAS,
        "SLOAD": 0,
        "CALL": costs.WARM_GAS,
        "CALLCODE": costs.WARM_GAS,
        "DELEGATECALL": costs.WARM_GAS,
        "STATICCALL": costs.WARM_GAS,
        "SELFDESTRUCT": call_costs.SELFDESTRUCT_GAS,
    },
}
"""Constant parts of the price that a fork changed: EIP-150, EIP-1884, EIP-2929."""

_SCHEDULES = {
    "constantinople": GAS_SCHEDULE_EIP1283,
    "istanbul": GAS_SCHEDULE_EIP2200,
    "berlin": GAS_SCHEDULE_EIP2929,
    "london": GAS_SCHEDULE_EIP3529,
}
"""Net prices of SSTORE; Petersburg took the first one back."""


class Price(NamedTuple):
    """What an opcode needs and costs in a fork."""

    constant: int
    taken: int
    """Stack items that there must be."""
    maximum: int
    """Stack items that there may be."""
    cost: Cost | None
    """The variable part, if there is one."""
    refund: Refund | None
    is_valid: bool
    """Whether the fork has the opcode at all."""


def _since(fork: Fork, name: str) -> bool:
    """Return whether a fork is that one or comes after it."""
    if fork.name not in _FORK_NAMES:  # blob-parameter forks follow the last one
        return True
    return _FORK_NAMES.index(fork.name) >= _FORK_NAMES.index(name)


def _memory_costs(fork: Fork) -> dict[str, Cost]:
    byte_gas = 50 if fork.clears_empty_accounts else 10
    code_copy = (
        costs.cold_code_copy_cost if fork.has_access_lists else costs.copy_cost(2, 4)
    )
    result: dict[str, Cost] = {
        "EXP": costs.exp_cost(byte_gas),
        "KECCAK256": costs.keccak_cost,
        "CALLDATACOPY": costs.copy_cost(1, 3),
        "CODECOPY": costs.copy_cost(1, 3),
        "RETURNDATACOPY": costs.copy_cost(1, 3),
        "EXTCODECOPY": code_copy,
        "MCOPY": costs.memory_copy_cost,
        "MLOAD": costs.fixed_range_cost(32),
        "MSTORE": costs.fixed_range_cost(32),
        "MSTORE8": costs.fixed_range_cost(1),
        "RETURN": costs.range_cost(1, 2),
        "REVERT": costs.range_cost(1, 2),
    }
    for topics in range(5):
        result[f"LOG{topics}"] = costs.log_cost(topics)
    init_code_gas = 0 if fork.max_init_code_size is None else costs.INIT_CODE_WORD_GAS
    result["CREATE"] = costs.create_cost(init_code_gas, fork.max_init_code_size)
    result["CREATE2"] = costs.create_cost(
        init_code_gas + costs.KECCAK_WORD_GAS, fork.max_init_code_size
    )
    if fork.has_access_lists:
        result["SLOAD"] = costs.slot_load_cost
        for name in ("BALANCE", "EXTCODESIZE", "EXTCODEHASH"):
            result[name] = costs.cold_account_cost
    return result


def _call_costs(fork: Fork) -> dict[str, Cost]:
    access: Callable[[Any, bytes, int], int] | None = None
    if fork.has_access_lists:
        access = call_costs.access_cost
    if fork.has_delegations:
        access = call_costs.delegated_access_cost

    def cost(*, has_value: bool, makes_account: bool = False) -> Cost:
        return call_costs.call_cost(
            has_value=has_value,
            makes_account=makes_account,
            keeps_a_64th=_since(fork, "tangerine_whistle"),
            clears_empty_accounts=fork.clears_empty_accounts,
            access=access,
        )

    return {
        "CALL": cost(has_value=True, makes_account=True),
        "CALLCODE": cost(has_value=True),
        "DELEGATECALL": cost(has_value=False),
        "STATICCALL": cost(has_value=False),
        "SELFDESTRUCT": call_costs.selfdestruct_cost(
            makes_account=_since(fork, "tangerine_whistle"),
            clears_empty_accounts=fork.clears_empty_accounts,
            has_access_lists=fork.has_access_lists,
        ),
    }


def _store(fork: Fork) -> tuple[Cost, Refund]:
    schedule = None
    for name, since in _SCHEDULES.items():
        if _since(fork, name):
            schedule = since
    if schedule is None or fork.name == "petersburg":
        return call_costs.simple_store_cost, call_costs.simple_store_refund
    return call_costs.net_store_cost(
        schedule,
        has_sentry=_since(fork, "istanbul"),
        has_access_lists=fork.has_access_lists,
    ), call_costs.net_store_refund(schedule)


@cache
def price_list(fork: Fork) -> tuple[Price, ...]:
    """Return the prices of the 256 opcodes."""
    constants = {opcode.name: opcode.gas for opcode in OPCODES}
    for name, repriced in _REPRICED.items():
        if _since(fork, name):
            constants |= repriced
    variable = _memory_costs(fork) | _call_costs(fork)
    variable["SSTORE"], store_refund = _store(fork)
    refunds = {"SSTORE": store_refund}
    if fork.has_selfdestruct_refund:
        refunds["SELFDESTRUCT"] = call_costs.selfdestruct_refund
    valid = {
        OPCODES[number].name
        for number in fork.base_state_class.computation_class.opcodes
    }
    unknown = Price(0, 0, STACK_LIMIT, None, None, False)
    return tuple(
        Price(
            constants[opcode.name],
            opcode.taken,
            opcode.stack_maximum,
            variable.get(opcode.name),
            refunds.get(opcode.name),
            True,
        )
        if opcode.name in valid and number != NUMBERS["INVALID"]
        else unknown
        for number, opcode in enumerate(OPCODES)
    )
