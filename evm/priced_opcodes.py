"""The opcodes of a fork: py-evm's, with our instructions and the prices of a gas table.

Calls before Berlin and SELFDESTRUCT take their base price from the table. py-evm charges
their other parts, which tests compare with ours.

py-evm 0.12.1b1 checks a creator's balance, depth and nonce before the size of the init
code. If one of them does not suffice, it pushes 0 and continues, whatever the size of the
init code. Oversized init code has to fail the frame before these checks (EIP-3860).

Source: https://eips.ethereum.org/EIPS/eip-3860
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from eth.exceptions import OutOfGas
from eth.vm.forks.berlin.logic import BaseCallEIP2929
from eth.vm.forks.shanghai.constants import MAX_INITCODE_SIZE
from eth.vm.logic.call import BaseCall
from eth.vm.logic.system import Create, Create2
from eth.vm.opcode import as_opcode

from evm.calls import Call
from evm.gas import KECCAK_WORD_GAS, word_count
from evm.instructions import priced_instructions

if TYPE_CHECKING:
    from evm.gas_table import GasTable


def priced_opcodes(opcodes: dict[int, Any], table: GasTable) -> dict[int, Any]:
    """Return py-evm's opcodes of a fork with the prices of its gas table."""
    instructions = priced_instructions(table)
    priced: dict[int, Any] = {}
    for number, wrapped in opcodes.items():
        # py-evm wraps SELFDESTRUCT in a deprecation warning.
        opcode = getattr(wrapped, "__wrapped__", wrapped)
        if isinstance(opcode, BaseCallEIP2929):
            priced[number] = Call(opcode)
        elif isinstance(opcode, Create):
            priced[number] = _creation(opcode, number, table)
        elif isinstance(opcode, BaseCall):
            call = priced[number] = copy(opcode)
            call.gas_cost = table.base[number]
        else:
            logic = instructions.get(opcode.mnemonic, opcode.logic_fn)
            gas = table.charged_first(number)
            priced[number] = as_opcode(logic, opcode.mnemonic, gas)
    return priced


def _creation(opcode: Create, number: int, table: GasTable) -> Any:
    """Return py-evm's CREATE or CREATE2 with the prices of a gas table."""
    word_gas = table.init_code_word
    if isinstance(opcode, Create2):
        word_gas += KECCAK_WORD_GAS
    limit = MAX_INITCODE_SIZE if table.init_code_word else None
    priced = copy(opcode)
    priced.get_gas_cost = partial(_creation_gas, table.base[number], word_gas, limit)
    return priced


def _creation_gas(base: int, word_gas: int, limit: int | None, data: Any) -> int:
    """Return the gas of a creation, without its memory.

    limit: bytes of init code. data: py-evm's operands.

    Raises: OutOfGas for more init code.
    """
    size: int = data.memory_length
    if limit is not None and size > limit:
        raise OutOfGas(f"{size} bytes of init code exceed {limit}")
    return base + word_gas * word_count(size)
