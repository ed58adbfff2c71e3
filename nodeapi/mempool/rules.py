"""The rules for a submitted transaction that depend on accounts and on the pool.

They are those of geth's two pools, in geth's order and with its texts. An account has
either blob transactions in the pool or other ones.

Sources: go-ethereum v1.17.10, core/txpool/validation.go, errors.go, reserver.go,
legacypool/legacypool.go, legacypool/list.go, blobpool/blobpool.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import log10

from eth_utils.exceptions import ValidationError

from evm.transactions import BLOB, Transaction
from nodeapi.sending.rules import InvalidTransaction

PRICE_BUMP = 10
"""Percentage by which a replacement has to exceed the former fees."""
BLOB_PRICE_BUMP = 100
"""The same for blob transactions."""
MAX_BLOB_TRANSACTIONS = 16
"""Maximum number of blob transactions of one account."""

_FUNDS = "insufficient funds for gas * price + value"
_UNDERPRICED = "replacement transaction underpriced"


@dataclass(frozen=True, slots=True)
class Pooled:
    """A transaction in the pool. cost: wei. fee, tip, blob_fee: wei per gas."""

    hash: bytes
    nonce: int
    is_blob: bool
    cost: int
    fee: int
    tip: int
    blob_fee: int


@dataclass(frozen=True, slots=True)
class Sender:
    """An account at the head, and its transactions in the pool.

    pooled: by nonce. No nonce is below the account's.
    is_authority: whether a pooled transaction has an authorization of this account.
    """

    nonce: int
    balance: int
    has_code: bool
    pooled: Sequence[Pooled]
    is_authority: bool

    def of_kind(self, is_blob: bool) -> list[Pooled]:
        """Return the pooled blob transactions, or those of other types."""
        return [each for each in self.pooled if each.is_blob == is_blob]


@dataclass(frozen=True, slots=True)
class Authority:
    """The pooled transactions of an account whose authorization is submitted."""

    transactions: int
    blob_transactions: int


def cost_of(transaction: Transaction) -> int:
    """Return the wei that the sender needs: value, and the highest possible fees."""
    return (
        transaction.gas * transaction.max_fee_per_gas
        + transaction.blob_gas * transaction.max_fee_per_blob_gas
        + transaction.value
    )


def authorities_of(transaction: Transaction) -> list[bytes]:
    """Return the accounts that have signed a transaction's authorizations, each once."""
    found: dict[bytes, None] = {}
    for authorization in transaction.authorization_list:
        with suppress(ValidationError):
            found[authorization.authority()] = None
    return list(found)


def executable(pooled: Sequence[Pooled], nonce: int) -> list[Pooled]:
    """Return the transactions with consecutive nonces from the account's nonce on."""
    found: list[Pooled] = []
    for each in pooled:
        if each.nonce != nonce + len(found):
            break
        found.append(each)
    return found


def check_sender(
    transaction: Transaction, sender: Sender, authorities: Mapping[bytes, Authority]
) -> Pooled | None:
    """Check a transaction against its sender's account and pooled transactions.

    authorities: an entry for each of `authorities_of(transaction)`.

    Return the pooled transaction that it replaces, None if there is none.

    Raises: InvalidTransaction.
    """
    is_blob = transaction.type == BLOB
    own = sender.of_kind(is_blob)
    ready = executable(own, sender.nonce)
    same = next((each for each in own if each.nonce == transaction.nonce), None)
    if transaction.nonce < sender.nonce:
        raise InvalidTransaction(
            f"nonce too low: next nonce {sender.nonce}, tx nonce {transaction.nonce}"
        )
    if is_blob and transaction.nonce > sender.nonce + len(ready):
        _check_blob_gap(transaction, sender, len(ready), len(own) - len(ready))
        return same
    _check_funds(transaction, sender, ready)
    if is_blob:
        _check_blob_delegation(transaction, sender, ready)
    else:
        _check_delegation(transaction, sender, ready)
        _check_authorities(authorities)
    if len(own) < len(sender.pooled) and not own:
        raise InvalidTransaction("address already reserved")
    return same


def check_replacement(transaction: Transaction, former: Pooled) -> None:
    """Check that a transaction pays enough to replace a pooled one.

    Raises: InvalidTransaction.
    """
    if transaction.type == BLOB:
        _check_blob_replacement(transaction, former)
        return
    fee, tip = transaction.max_fee_per_gas, transaction.max_priority_fee_per_gas
    factor = 100 + PRICE_BUMP
    if (
        fee <= former.fee
        or tip <= former.tip
        or fee < former.fee * factor // 100
        or tip < former.tip * factor // 100
    ):
        raise InvalidTransaction(_UNDERPRICED)


def _check_funds(
    transaction: Transaction, sender: Sender, ready: Sequence[Pooled]
) -> None:
    balance, cost = sender.balance, cost_of(transaction)
    if balance < cost:
        raise InvalidTransaction(
            f"{_FUNDS}: balance {balance}, tx cost {cost}, overshot {cost - balance}"
        )
    spent = sum(each.cost for each in ready)
    position = transaction.nonce - sender.nonce
    if position < len(ready):
        bump = cost - ready[position].cost
        if balance < spent + bump:
            raise InvalidTransaction(
                f"{_FUNDS}: balance {balance}, queued cost {spent}, "
                f"tx bumped {bump}, overshot {spent + bump - balance}"
            )
        return
    if balance < spent + cost:
        raise InvalidTransaction(
            f"{_FUNDS}: balance {balance}, queued cost {spent}, "
            f"tx cost {cost}, overshot {spent + cost - balance}"
        )
    if transaction.type == BLOB and len(ready) >= MAX_BLOB_TRANSACTIONS:
        raise InvalidTransaction(f"account limit exceeded: pooled {len(ready)} txs")


def _check_blob_gap(
    transaction: Transaction, sender: Sender, ready: int, gapped: int
) -> None:
    """Check whether the pool keeps a blob transaction with a gap before its nonce.

    geth allows the more gaps, the more transactions the account has sent.
    """
    allowance = int(log10(sender.nonce + 1))
    if min(allowance, MAX_BLOB_TRANSACTIONS - ready) - gapped < 1:
        raise InvalidTransaction(
            f"nonce too high: tx nonce {transaction.nonce}, "
            f"gapped nonce {sender.nonce + ready}"
        )


def _check_delegation(
    transaction: Transaction, sender: Sender, ready: Sequence[Pooled]
) -> None:
    """Allow one transaction at a time to an account with a delegation (EIP-7702)."""
    if not sender.has_code and not sender.is_authority:
        return
    if not ready:
        if transaction.nonce != sender.nonce:
            raise InvalidTransaction("gapped-nonce tx from delegated accounts")
    elif transaction.nonce >= sender.nonce + len(ready):
        raise InvalidTransaction(
            "in-flight transaction limit reached for delegated accounts"
        )


def _check_blob_delegation(
    transaction: Transaction, sender: Sender, ready: Sequence[Pooled]
) -> None:
    if not ready or not (sender.has_code or sender.is_authority):
        return
    if len(ready) > 1 or transaction.nonce != ready[0].nonce:
        raise InvalidTransaction(
            "in-flight transaction limit reached for delegated accounts"
        )


def _check_authorities(authorities: Mapping[bytes, Authority]) -> None:
    """Reject authorizations of accounts with several transactions in the pool."""
    for each in authorities.values():
        if each.transactions > 1 or each.blob_transactions:
            raise InvalidTransaction("authority already reserved")


def _check_blob_replacement(transaction: Transaction, former: Pooled) -> None:
    fees = (
        ("gas fee cap", transaction.max_fee_per_gas, former.fee),
        ("gas tip cap", transaction.max_priority_fee_per_gas, former.tip),
        ("blob gas fee cap", transaction.max_fee_per_blob_gas, former.blob_fee),
    )
    for name, offered, queued in fees:
        if offered <= queued:
            raise InvalidTransaction(
                f"{_UNDERPRICED}: new tx {name} {offered} <= {queued} queued"
            )
    for name, offered, queued in fees:
        if offered < queued * (100 + BLOB_PRICE_BUMP) // 100:
            raise InvalidTransaction(
                f"{_UNDERPRICED}: new tx {name} {offered} < {queued} queued "
                f"+ {BLOB_PRICE_BUMP}% replacement penalty"
            )
