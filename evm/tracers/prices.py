"""Price lists: stack requirements and costs of every opcode in each fork."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from evm.chain_config import LADDER
from evm.gas import KECCAK_WORD_GAS
from evm.opcodes import NUMBERS, OPCODES
from evm.stack_limit import STACK_LIMIT
from evm.tracers import call_costs, costs

if TYPE_CHECKING:
    from evm.fork import Fork
    from evm.tracers.call_costs import Refund
    from evm.tracers.costs import Cost

_FORK_NAMES = tuple(LADDER)

_WITH_VARIABLE_COST = ("EXP", "LOG0", "LOG1", "LOG2", "LOG3", "LOG4")
"""Opcodes whose base price geth charges together with the variable cost."""


class Price(NamedTuple):
    """Requirements and cost of an opcode in a fork."""

    constant: int
    taken: int
    """Smallest stack size before the opcode."""
    maximum: int
    """Largest stack size before the opcode."""
    cost: Cost | None
    """The variable part, or None."""
    refund: Refund | None
    is_valid: bool
    """Whether the fork has the opcode."""


def _since(fork: Fork, name: str) -> bool:
    """Return whether a fork is the named one or a later one."""
    if fork.name not in _FORK_NAMES:  # blob-parameter forks follow the last one
        return True
    return _FORK_NAMES.index(fork.name) >= _FORK_NAMES.index(name)


def _memory_costs(fork: Fork) -> dict[str, Cost]:
    table = fork.gas_table
    code_copy = (
        costs.cold_code_copy_cost if fork.has_access_lists else costs.copy_cost(2, 4)
    )
    result: dict[str, Cost] = {
        "EXP": costs.exp_cost(table.base[NUMBERS["EXP"]], table.exp_byte),
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
        name = f"LOG{topics}"
        result[name] = costs.log_cost(table.base[NUMBERS[name]], topics)
    result["CREATE"] = costs.create_cost(table.init_code_word, fork.max_init_code_size)
    result["CREATE2"] = costs.create_cost(
        table.init_code_word + KECCAK_WORD_GAS, fork.max_init_code_size
    )
    if fork.has_access_lists:
        result["SLOAD"] = costs.slot_load_cost
        for name in ("BALANCE", "EXTCODESIZE", "EXTCODEHASH"):
            result[name] = costs.cold_account_cost
    return result


def _call_costs(fork: Fork) -> dict[str, Cost]:
    def cost(*, has_value: bool, makes_account: bool = False) -> Cost:
        intrinsic = call_costs.intrinsic_cost(
            makes_account=makes_account,
            clears_empty_accounts=fork.clears_empty_accounts,
            has_delegations=fork.has_delegations,
        )
        return call_costs.call_cost(
            intrinsic,
            has_value=has_value,
            makes_account=makes_account,
            keeps_a_64th=_since(fork, "tangerine_whistle"),
            has_access_lists=fork.has_access_lists,
            has_delegations=fork.has_delegations,
        )

    return {
        "CALL": cost(has_value=True, makes_account=True),
        "CALLCODE": cost(has_value=True),
        "DELEGATECALL": cost(has_value=False),
        "STATICCALL": cost(has_value=False),
        "SELFDESTRUCT": call_costs.selfdestruct_cost(
            base=fork.gas_table.base[NUMBERS["SELFDESTRUCT"]]
            if _is_charged_late(fork, "SELFDESTRUCT")
            else 0,
            makes_account=_since(fork, "tangerine_whistle"),
            clears_empty_accounts=fork.clears_empty_accounts,
            has_access_lists=fork.has_access_lists,
        ),
    }


def _store(fork: Fork) -> tuple[Cost, Refund]:
    prices = fork.gas_table.store
    if prices is None:
        return call_costs.simple_store_cost, call_costs.simple_store_refund
    return call_costs.net_store_cost(prices), call_costs.net_store_refund(prices)


def _is_charged_late(fork: Fork, name: str) -> bool:
    """Return whether geth charges an opcode's base price with the variable cost."""
    if name == "SLOAD":
        return fork.gas_table.has_access_prices
    if name == "SELFDESTRUCT":
        return not fork.gas_table.has_access_prices
    return name in _WITH_VARIABLE_COST


@cache
def price_list(fork: Fork) -> tuple[Price, ...]:
    """Return the prices of the 256 opcodes."""
    base = fork.gas_table.base
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
            0 if _is_charged_late(fork, opcode.name) else base[number],
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
