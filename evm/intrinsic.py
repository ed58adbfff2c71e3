"""Intrinsic gas: the gas that a transaction costs before its execution.

Sources: Yellow Paper, 6.2; https://eips.ethereum.org/EIPS/eip-2 (creation), -2028
(data), -2930 (access lists), -3860 (init code), -7702 (authorisations), -7623 (floor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.gas import INIT_CODE_WORD_GAS
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from evm.fork import Fork
    from evm.transactions import Transaction

TRANSACTION_GAS = 21_000
ZERO_BYTE_GAS = 4
ACCESS_LIST_ADDRESS_GAS = 2400
ACCESS_LIST_SLOT_GAS = 1900
AUTHORIZATION_GAS = 25_000
"""Gas per authorisation. Half of it is refunded if the account exists."""
FLOOR_GAS_PER_TOKEN = 10
TOKENS_PER_NONZERO_BYTE = 4
"""Calldata tokens (EIP-7623) per non-zero byte. A zero byte is one token."""


def intrinsic_gas(transaction: Transaction, fork: Fork) -> int:
    """Return the gas that is charged before execution. The gas limit must cover it."""
    data = transaction.data
    gas = TRANSACTION_GAS
    if data:
        zeros = data.count(0)
        gas += zeros * ZERO_BYTE_GAS + (len(data) - zeros) * fork.nonzero_byte_gas
    if transaction.to == CREATE_ADDRESS:
        gas += fork.creation_gas
        if fork.max_init_code_size is not None:
            gas += INIT_CODE_WORD_GAS * ((len(data) + 31) // 32)
    for _, slots in transaction.access_list:
        gas += ACCESS_LIST_ADDRESS_GAS + ACCESS_LIST_SLOT_GAS * len(slots)
    return gas + AUTHORIZATION_GAS * len(transaction.authorization_list)


def floor_gas(transaction: Transaction, fork: Fork) -> int:
    """Return the least gas that the transaction is charged (EIP-7623), 0 before Prague.

    Its gas limit must cover this as well.
    """
    if not fork.has_data_floor:
        return 0
    data = transaction.data
    tokens = TOKENS_PER_NONZERO_BYTE * len(data) - 3 * data.count(0)
    return TRANSACTION_GAS + FLOOR_GAS_PER_TOKEN * tokens
