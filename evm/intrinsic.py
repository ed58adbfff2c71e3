"""Intrinsic gas: the gas that a transaction costs before its execution.

Sources: Yellow Paper, 6.2; https://eips.ethereum.org/EIPS/eip-2 (creation), -2028
(data), -2930 and -7981 (access lists), -3860 (init code), -7702 (authorizations), -7623
and -7976 (floor), -2780 (recipient and value).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evm.rules.prices import word_count
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eth_typing import Address, Hash32

    from evm.rules.fork import Fork
    from evm.transactions import AccessList, Authorization


class Executable(Protocol):
    """A transaction, or a call that is executed like one."""

    intrinsic_gas: int
    """Gas charged before execution, which the check sets."""

    @property
    def sender(self) -> Address:
        """The account that pays."""

    @property
    def nonce(self) -> int:
        """The sender's nonce, from which the address of a creation follows."""

    @property
    def to(self) -> Address:
        """The receiver, `CREATE_ADDRESS` for a creation."""

    @property
    def value(self) -> int:
        """Wei."""

    @property
    def gas(self) -> int:
        """The gas limit."""

    @property
    def max_fee_per_gas(self) -> int:
        """Wei."""

    @property
    def max_priority_fee_per_gas(self) -> int:
        """Wei."""

    @property
    def max_fee_per_blob_gas(self) -> int | None:
        """Wei."""

    @property
    def data(self) -> bytes:
        """The input or init code."""

    @property
    def access_list(self) -> AccessList:
        """Accounts and slots that are warm from the beginning."""

    @property
    def authorization_list(self) -> Sequence[Authorization]:
        """The authorizations of delegations."""

    @property
    def blob_gas(self) -> int:
        """The blob gas, which is priced separately from gas."""

    @property
    def blob_versioned_hashes(self) -> Sequence[Hash32]:
        """The hashes of the blobs."""


def intrinsic_gas(transaction: Executable, fork: Fork) -> int:
    """Return the gas that is charged before execution. The gas limit must cover it."""
    data, prices = transaction.data, fork.prices
    gas = _base_gas(transaction, fork)
    if data:
        zeros = data.count(0)
        gas += zeros * prices.zero_byte + (len(data) - zeros) * prices.nonzero_byte
    if transaction.to == CREATE_ADDRESS:
        gas += prices.init_code_word * word_count(len(data))
    for _, slots in transaction.access_list:
        gas += prices.access_list_address + prices.access_list_slot * len(slots)
    return gas + prices.authorization * len(transaction.authorization_list)


def floor_gas(transaction: Executable, fork: Fork) -> int:
    """Return the least gas that the transaction is charged (EIP-7623), 0 before Prague.

    Its gas limit must cover this as well.
    """
    data, prices = transaction.data, fork.prices
    if not prices.floor_nonzero_byte:
        return 0
    zeros = data.count(0)
    # Before EIP-2780, the floor has no part for a creation.
    gas = _base_gas(transaction, fork) if prices.recipient else prices.transaction
    gas += zeros * prices.floor_zero_byte
    gas += (len(data) - zeros) * prices.floor_nonzero_byte
    for _, slots in transaction.access_list:
        gas += prices.floor_address + prices.floor_slot * len(slots)
    return gas


def _base_gas(transaction: Executable, fork: Fork) -> int:
    """Return the gas of a transaction without data, lists and authorizations."""
    gas, prices = fork.prices.transaction, fork.prices
    if transaction.to == CREATE_ADDRESS:
        return gas + prices.creation
    if prices.recipient and transaction.to != transaction.sender:
        gas += prices.recipient
        if transaction.value:
            gas += prices.transfer
    return gas
