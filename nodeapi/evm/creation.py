"""CREATE and CREATE2 that look at the size of init code before anything else.

py-evm 0.12.1b1 first looks whether the creator has the money, the depth and the nonce:
without one of them it pushes 0 and goes on, however long the init code is. Too long an
init code is a failure of the whole frame, and comes first.
Source: https://eips.ethereum.org/EIPS/eip-3860
"""

from __future__ import annotations

from typing import Any

from eth.exceptions import OutOfGas
from eth.vm.forks.shanghai.constants import MAX_INITCODE_SIZE
from eth.vm.forks.shanghai.logic import Create2EIP3860, CreateEIP3860


class _LimitedInitCode:
    """Mixed in before py-evm's opcode."""

    def get_gas_cost(self, data: Any) -> int:
        """Return the gas of the creation. Raises: OutOfGas for too much init code."""
        if data.memory_length > MAX_INITCODE_SIZE:
            raise OutOfGas(
                f"{data.memory_length} bytes of init code exceed {MAX_INITCODE_SIZE}"
            )
        gas: int = super().get_gas_cost(data)  # type: ignore[misc]  # of the opcode
        return gas


def limit_init_code(opcode: Any) -> Any:
    """Return the opcode with the check where it belongs, if it creates with a limit."""
    if not isinstance(opcode, CreateEIP3860 | Create2EIP3860):
        return opcode
    base = type(opcode)
    return type(base.__name__, (_LimitedInitCode, base), {})()
