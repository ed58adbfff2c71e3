"""The prices of a fork, in gas. `evm.rules.forks` has what each fork changed.

Sources: Yellow Paper, appendix G; go-ethereum, params/protocol_params.go,
core/vm/jump_table.go
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from evm.opcodes import NUMBERS, OPCODES

MEMORY_WORD_GAS = 3
MEMORY_QUADRATIC_DENOMINATOR = 512


class StorePrices(NamedTuple):
    """Prices of SSTORE that also depend on the slot's value before the transaction.

    Source: https://eips.ethereum.org/EIPS/eip-2200
    """

    unchanged: int
    """A write that keeps the value, or another write to a changed slot."""
    set: int
    """The first change, from zero."""
    reset: int
    """The first change, from another value."""
    clear_refund: int
    """Refund for a change to zero."""
    sentry: int = 0
    """SSTORE fails if the remaining gas does not exceed this amount."""
    cold: int = 0
    """The transaction's first access to the slot, in addition (EIP-2929)."""


COST_PER_STATE_BYTE = 1530
"""State gas: https://eips.ethereum.org/EIPS/eip-8037."""


class StatePrices(NamedTuple):
    """Prices of what remains in the state, in state gas.

    Source: https://eips.ethereum.org/EIPS/eip-8037
    """

    account: int = 120 * COST_PER_STATE_BYTE
    """A new account."""
    slot: int = 64 * COST_PER_STATE_BYTE
    """A slot that was zero."""
    delegation: int = 23 * COST_PER_STATE_BYTE
    """A delegation of an account that had none (EIP-7702)."""
    code_byte: int = COST_PER_STATE_BYTE
    """Each byte of a new contract's code."""

    @classmethod
    def per_byte(cls, cost: int) -> StatePrices:
        """Return the prices for another cost of a byte in the state."""
        return cls(*(price // COST_PER_STATE_BYTE * cost for price in cls()))


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The prices of one fork. The defaults are Frontier's."""

    constant: tuple[int, ...] = tuple(opcode.gas for opcode in OPCODES)
    """By opcode number: what is charged before the operands are looked at. Opcodes that
    the fork does not have are included."""

    # Instructions, beyond their constant price
    exp: int = 10
    exp_byte: int = 10
    """For each byte of the exponent."""
    copy_word: int = 3
    keccak_word: int = 6
    log: int = 375
    log_topic: int = 375
    log_byte: int = 8
    store: StorePrices | None = None
    """If None, the price of SSTORE depends on the present value only."""
    store_set: int = 20_000
    store_reset: int = 5000
    store_clear_refund: int = 15_000
    """These three apply without `store`."""
    state: StatePrices | None = None
    """The second dimension (EIP-8037). None: nothing costs state gas."""
    selfdestruct: int = 0
    """What geth charges together with the rest, up to Istanbul."""
    selfdestruct_refund: int = 24_000

    # Accesses (EIP-2929)
    warm: int = 0
    cold_account: int = 0
    """The transaction's first access to an account, 0: costs no more than others."""
    cold_slot: int = 0
    code_read: int = 0
    """EXTCODESIZE and EXTCODECOPY, in addition to the account's access."""

    # Calls and creations
    value: int = 9000
    """A call that transfers ether, in addition to the call's."""
    stipend: int = 2300
    """Added to the gas of a call that transfers ether."""
    new_account: int = 25_000
    """A call that creates an account."""
    new_beneficiary: int = 25_000
    """A SELFDESTRUCT that creates an account."""
    code_byte: int = 200
    """For each byte of a new contract's code."""
    code_word: int = 0
    """For each 32 bytes of a new contract's code."""
    init_code_word: int = 0

    # Transactions
    transaction: int = 21_000
    creation: int = 0
    """A transaction that creates a contract, in addition to `transaction`."""
    recipient: int = 0
    """A transaction to another account than the sender's, in addition (EIP-2780)."""
    transfer: int = 0
    """A transaction that transfers ether to that account, in addition (EIP-2780)."""
    zero_byte: int = 4
    nonzero_byte: int = 68
    access_list_address: int = 2400
    access_list_slot: int = 1900
    authorization: int = 25_000
    existing_account_refund: int = 12_500
    """Refund of an authorization's gas if the account exists already (EIP-7702)."""
    account_write: int = 0
    """An authorization's change of an account that nothing else pays for (EIP-2780)."""
    floor_zero_byte: int = 0
    floor_nonzero_byte: int = 0
    """The least that a byte of data costs, however little is executed (EIP-7623)."""
    floor_address: int = 0
    floor_slot: int = 0
    """The same for entries of the access list (EIP-7981)."""

    def changed(self, **prices: int) -> Prices:
        """Return the prices with other constant prices, by opcode name."""
        constant = list(self.constant)
        for name, gas in prices.items():
            constant[NUMBERS[name]] = gas
        return replace(self, constant=tuple(constant))


def word_count(size: int) -> int:
    """Return the number of 32-byte words for a number of bytes, rounded up."""
    return (size + 31) >> 5


def memory_gas(size: int) -> int:
    """Return the gas for a memory size in bytes, a multiple of 32."""
    words = size >> 5
    return words * MEMORY_WORD_GAS + words * words // MEMORY_QUADRATIC_DENOMINATOR
