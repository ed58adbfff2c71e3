"""What Osaka adds to Prague inside the EVM.

Its other rules (gas and blobs of a transaction, size of a block, reserve price of
blobs) are data in `nodeapi.evm.forks`.
"""

from __future__ import annotations

from typing import Any

from eth.abc import ComputationAPI
from eth.vm.forks.prague.computation import PRAGUE_PRECOMPILES
from eth.vm.forks.prague.opcodes import PRAGUE_OPCODES
from eth.vm.opcode import as_opcode

from nodeapi.evm.precompiles import (
    MODEXP_ADDRESS,
    P256_VERIFY_ADDRESS,
    modexp,
    osaka_modexp_gas,
    p256_verify,
)

CLZ = 0x1E
CLZ_GAS = 5
MODEXP_MAX_LENGTH = 1024
"""Bytes, of each of its three numbers: https://eips.ethereum.org/EIPS/eip-7823."""


def count_leading_zeros(computation: ComputationAPI) -> None:
    """Replace the top of the stack by its number of leading zero bits, 256 for zero.

    Source: https://eips.ethereum.org/EIPS/eip-7939
    """
    computation.stack_push_int(256 - computation.stack_pop1_int().bit_length())


OSAKA_OPCODES: dict[int, Any] = {
    **PRAGUE_OPCODES,
    CLZ: as_opcode(count_leading_zeros, "CLZ", CLZ_GAS),
}
OSAKA_PRECOMPILES: dict[bytes, Any] = {
    **PRAGUE_PRECOMPILES,
    MODEXP_ADDRESS: modexp(osaka_modexp_gas, MODEXP_MAX_LENGTH),
    P256_VERIFY_ADDRESS: p256_verify,
}
