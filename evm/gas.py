"""Gas prices that no fork changed, and how prices are computed.

Instructions and tracers use them. Prices that depend on the fork are in
`evm.gas_table`.

Source: https://ethereum.github.io/yellowpaper/paper.pdf, appendix G
"""

from __future__ import annotations

from typing import NamedTuple

WARM_GAS = 100
"""Price of a repeated access to an account or a slot (EIP-2929)."""
COLD_ACCOUNT_GAS = 2600
"""Price of a transaction's first access to an account."""
COLD_SLOT_GAS = 2100
"""Price of a transaction's first access to a storage slot."""

VALUE_GAS = 9000
"""Price of a call that transfers ether, in addition to the call's."""
CALL_STIPEND_GAS = 2300
"""Added to the gas of a call that transfers ether."""
NEW_ACCOUNT_GAS = 25_000
"""Price of a call or a SELFDESTRUCT that creates an account."""
SELFDESTRUCT_GAS = 5000
"""Price of SELFDESTRUCT from the Tangerine Whistle fork on."""
SELFDESTRUCT_REFUND_GAS = 24_000
"""Refund for SELFDESTRUCT before the London fork."""

MEMORY_WORD_GAS = 3
MEMORY_QUADRATIC_DENOMINATOR = 512
COPY_WORD_GAS = 3
KECCAK_WORD_GAS = 6
INIT_CODE_WORD_GAS = 2
"""https://eips.ethereum.org/EIPS/eip-3860"""
CODE_DEPOSIT_GAS = 200
"""Per byte of a new contract's code."""
LOG_TOPIC_GAS = 375
LOG_BYTE_GAS = 8

SSTORE_SET_GAS, SSTORE_RESET_GAS, SSTORE_CLEAR_REFUND_GAS = 20_000, 5000, 15_000
"""Prices of forks in which they depend on the present value only."""


class StorePrices(NamedTuple):
    """Prices of SSTORE that also depend on the slot's value before the transaction.

    Source: https://eips.ethereum.org/EIPS/eip-2200
    """

    unchanged: int
    """Gas of a write that keeps the value, or of another write to a changed slot."""
    set: int
    """Gas of the first change, from zero."""
    reset: int
    """Gas of the first change, from another value."""
    clear_refund: int
    """Refund for a change to zero."""
    sentry: int = 0
    """SSTORE fails if the remaining gas does not exceed this amount."""
    cold: int = 0
    """Added to the transaction's first access to the slot."""


def word_count(size: int) -> int:
    """Return the number of 32-byte words for a number of bytes, rounded up."""
    return (size + 31) >> 5


def memory_gas(size: int) -> int:
    """Return the gas for a memory size in bytes, a multiple of 32."""
    words = size >> 5
    return words * MEMORY_WORD_GAS + words * words // MEMORY_QUADRATIC_DENOMINATOR


def net_store_price(
    prices: StorePrices, original: int, current: int, new: int
) -> tuple[int, int]:
    """Return the gas of a storage write, and its change of the refund.

    The surcharge for the first access is not included.

    original: the value at the start of the transaction. current: the present value.

    Source: https://eips.ethereum.org/EIPS/eip-2200
    """
    clears = prices.clear_refund
    if current == new:
        return prices.unchanged, 0
    if original == current:
        if original == 0:
            return prices.set, 0
        return prices.reset, 0 if new else clears
    refund = 0
    if original:
        if current == 0:
            refund -= clears
        if new == 0:
            refund += clears
    if original == new:
        full = prices.reset if original else prices.set
        refund += full - prices.unchanged
    return prices.unchanged, refund


def simple_store_price(current: int, new: int) -> tuple[int, int]:
    """Return the gas and the refund of a storage write in forks without StorePrices.

    current: the present value.
    """
    gas = SSTORE_SET_GAS if new and not current else SSTORE_RESET_GAS
    return gas, SSTORE_CLEAR_REFUND_GAS if current and not new else 0
