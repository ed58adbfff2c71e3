"""The gas table of each fork against py-evm's prices."""

from __future__ import annotations

import pytest
from eth.vm.forks import (
    BerlinVM,
    ByzantiumVM,
    CancunVM,
    ConstantinopleVM,
    FrontierVM,
    HomesteadVM,
    IstanbulVM,
    LondonVM,
    ParisVM,
    PetersburgVM,
    PragueVM,
    ShanghaiVM,
    SpuriousDragonVM,
    TangerineWhistleVM,
)
from eth.vm.forks.berlin.logic import GAS_SCHEDULE_EIP2929
from eth.vm.forks.constantinople.storage import GAS_SCHEDULE_EIP1283
from eth.vm.forks.istanbul.storage import GAS_SCHEDULE_EIP2200
from eth.vm.forks.london.storage import GAS_SCHEDULE_EIP3529

from evm import gas_table
from evm.chain_config import LADDER
from evm.opcodes import NUMBERS, OPCODE_NAMES
from evm.tracers.prices import price_list

STOCK = {
    vm.fork.replace("-", "_"): vm
    for vm in (
        *(FrontierVM, HomesteadVM, TangerineWhistleVM, SpuriousDragonVM, ByzantiumVM),
        *(ConstantinopleVM, PetersburgVM, IstanbulVM, BerlinVM, LondonVM, ParisVM),
        *(ShanghaiVM, CancunVM, PragueVM),
    )
}
CHARGED_BY_GETH_WITH_OPERANDS = {"EXP", "LOG0", "LOG1", "LOG2", "LOG3", "LOG4"}


@pytest.mark.parametrize("fork", STOCK)
def test_instructions_have_py_evms_prices(fork: str) -> None:
    stock = STOCK[fork].get_state_class().computation_class.opcodes
    ours = LADDER[fork].base_state_class.computation_class
    table = LADDER[fork].gas_table
    assert ours.opcodes.keys() == stock.keys()
    for number, opcode in stock.items():
        opcode = getattr(opcode, "__wrapped__", opcode)
        charged = table.charged_first(number)
        assert charged == opcode.gas_cost, OPCODE_NAMES[number]
        _, gas, _ = ours.opcode_table().entries[number]
        assert gas in (charged, 0), OPCODE_NAMES[number]


@pytest.mark.parametrize(
    ("table", "schedule"),
    [
        (gas_table.CONSTANTINOPLE, GAS_SCHEDULE_EIP1283),
        (gas_table.ISTANBUL, GAS_SCHEDULE_EIP2200),
        (gas_table.BERLIN, GAS_SCHEDULE_EIP2929),
        (gas_table.LONDON, GAS_SCHEDULE_EIP3529),
    ],
)
def test_storage_has_py_evms_prices(
    table: gas_table.GasTable, schedule: tuple[int, ...]
) -> None:
    assert table.store is not None
    assert table.store[:4] == schedule


@pytest.mark.parametrize("fork", LADDER)
def test_tracers_have_the_instructions_prices(fork: str) -> None:
    table = LADDER[fork].gas_table
    late = CHARGED_BY_GETH_WITH_OPERANDS | {
        "SLOAD" if table.has_access_prices else "SELFDESTRUCT"
    }
    for number, price in enumerate(price_list(LADDER[fork])):
        name = OPCODE_NAMES[number]
        if price.is_valid:
            assert price.constant == (0 if name in late else table.base[number]), name


def test_a_repriced_table_differs_in_the_named_opcodes_only() -> None:
    table = gas_table.FRONTIER.repriced(SLOAD=7)
    changed = {
        number
        for number, (old, new) in enumerate(
            zip(gas_table.FRONTIER.base, table.base, strict=True)
        )
        if old != new
    }
    assert changed == {NUMBERS["SLOAD"]}
