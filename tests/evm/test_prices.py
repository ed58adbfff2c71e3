"""The prices of each fork against py-evm's."""

from __future__ import annotations

import pytest
from eth.vm.forks.berlin.logic import GAS_SCHEDULE_EIP2929
from eth.vm.forks.constantinople.storage import GAS_SCHEDULE_EIP1283
from eth.vm.forks.istanbul.storage import GAS_SCHEDULE_EIP2200
from eth.vm.forks.london.storage import GAS_SCHEDULE_EIP3529

from evm.opcodes import NUMBERS, OPCODE_NAMES, OPCODES
from evm.rules import forks
from evm.rules.fork import Fork
from evm.rules.forks import ACCOUNT_ACCESSES
from evm.rules.prices import Prices
from nodeapi.chain.py_evm import VMS
from tests.support.py_evm import FORKS


@pytest.mark.parametrize("fork", FORKS)
def test_instructions_have_py_evms_prices(fork: str) -> None:
    stock = VMS[fork].get_state_class().computation_class.opcodes
    ours: Fork = getattr(forks, fork.upper())
    prices = ours.prices
    names = {OPCODE_NAMES[number] for number in stock}
    assert ours.opcodes == names - {"INVALID"}
    with_operands = {"EXP": prices.exp, "SELFDESTRUCT": prices.selfdestruct}
    with_operands |= {f"LOG{topics}": prices.log for topics in range(5)}
    if prices.warm:  # py-evm charges it together with the surcharge
        with_operands |= dict.fromkeys(ACCOUNT_ACCESSES, -prices.warm)
    for number, opcode in stock.items():
        opcode, name = getattr(opcode, "__wrapped__", opcode), OPCODE_NAMES[number]
        charged = prices.constant[number] + with_operands.get(name, 0)
        assert charged == opcode.gas_cost, name


@pytest.mark.parametrize(
    ("fork", "schedule"),
    [
        (forks.CONSTANTINOPLE, GAS_SCHEDULE_EIP1283),
        (forks.ISTANBUL, GAS_SCHEDULE_EIP2200),
        (forks.BERLIN, GAS_SCHEDULE_EIP2929),
        (forks.LONDON, GAS_SCHEDULE_EIP3529),
    ],
)
def test_storage_has_py_evms_prices(fork: Fork, schedule: tuple[int, ...]) -> None:
    assert fork.prices.store is not None
    assert fork.prices.store[:4] == schedule


def test_changed_prices_differ_in_the_named_opcodes_only() -> None:
    before, after = Prices(), Prices().changed(SLOAD=7)
    pairs = zip(before.constant, after.constant, strict=True)
    changed = {number for number, (old, new) in enumerate(pairs) if old != new}
    assert changed == {NUMBERS["SLOAD"]}
    assert before.constant == tuple(opcode.gas for opcode in OPCODES)
