"""The opcodes of Osaka.

Its other rules (limits of gas, blobs and block size, the blobs' reserve price) are data
in `evm.forks`.
"""

from __future__ import annotations

from typing import Any

from eth.abc import ComputationAPI
from eth.vm.forks.prague.opcodes import PRAGUE_OPCODES
from eth.vm.opcode import as_opcode

from evm.opcodes import OPCODES

CLZ = 0x1E


def count_leading_zeros(computation: ComputationAPI) -> None:
    """Replace the top of the stack by its number of leading zero bits (256 for 0).

    Source: https://eips.ethereum.org/EIPS/eip-7939
    """
    computation.stack_push_int(256 - computation.stack_pop1_int().bit_length())


OSAKA_OPCODES: dict[int, Any] = {
    **PRAGUE_OPCODES,
    CLZ: as_opcode(count_leading_zeros, "CLZ", OPCODES[CLZ].gas),
}
