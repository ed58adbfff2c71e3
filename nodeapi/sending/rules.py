"""The rules for a submitted transaction that do not depend on any account.

They are checked in geth's order and reported with its texts, under the rules of the
head's fork. Nonces and balances are left to the upstreams, because their heads may be
newer. Proofs of blobs, which are expensive to verify, and an upstream's own rules, such as
its lowest tip, are left to the upstreams, too. The local pool has geth's own rules:
`nodeapi.sending.proofs` verifies proofs for it, and `nodeapi.mempool.rules` checks accounts.

Sources: go-ethereum v1.17.10, core/txpool/validation.go, core/txpool/errors.go,
core/error.go, core/types/transaction_signing.go, internal/ethapi/api.go
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from evm import checks
from evm.checks import FLOOR_TEXT, FUNDS_TEXT
from evm.intrinsic import floor_gas, intrinsic_gas
from evm.rules.fork import Fork
from evm.transactions import (
    BLOB,
    CELLS_PER_BLOB,
    CREATE_ADDRESS,
    DYNAMIC_FEE,
    SET_CODE,
    Transaction,
)
from nodeapi.sending.decoding import Sidecar, Submission

MAX_BYTES = 128 * 1024
"""Maximum size of a transaction without blobs."""
MAX_BLOB_BYTES = 1024 * 1024
"""Maximum size of a blob transaction, its sidecar included."""
MAX_BLOBS = 6
MIN_BLOB_FEE = 1
"""Wei per blob gas."""
MIN_LOCAL_TIP = 1
"""Wei per gas. geth's default."""
LOCAL_FEE_CAP = 10**18
"""Highest fee in wei. geth's default."""

_MAX_UINT256 = 2**256 - 1
_MAX_NONCE = 2**64 - 1
_BLOB_HASH_VERSION = 0x01
_FORK_OF_TYPE = {DYNAMIC_FEE: "London", BLOB: "Cancun", SET_CODE: "Prague"}
"""Transaction type → fork in geth's text. Before Berlin, the text names Berlin."""


class InvalidTransaction(ValueError):
    """Raised when a transaction breaks a rule. `str` is geth's text."""


@dataclass(frozen=True, slots=True)
class HeadRules:
    """The rules that depend on the head: its fork and its gas limit.

    is_local: whether the rules of geth's own pool apply, too: lowest tip, highest fee.
    """

    chain_id: int
    fork: Fork
    gas_limit: int
    is_local: bool = False


def check_size(raw: bytes) -> None:
    """Check the length of a raw transaction before it is decoded.

    Raises: InvalidTransaction.
    """
    limit = MAX_BLOB_BYTES if raw[:1] == bytes((BLOB,)) else MAX_BYTES
    if len(raw) > limit:
        raise InvalidTransaction(
            f"oversized data: transaction size {len(raw)}, limit {limit}"
        )


def check(submission: Submission, rules: HeadRules) -> None:
    """Check a transaction. Recovers and caches its sender.

    Raises: InvalidTransaction.
    """
    transaction, fork = submission.transaction, rules.fork
    if rules.is_local:
        _check_fee_cap(transaction)
    if not submission.is_protected:
        raise InvalidTransaction(
            "only replay-protected (EIP-155) transactions allowed over RPC"
        )
    _check_type(transaction, fork)
    _check_gas_limits(transaction, rules)
    _check_fees(transaction)
    check_signature(transaction, rules.chain_id)
    if transaction.nonce >= _MAX_NONCE:
        raise InvalidTransaction("nonce has max value")
    if transaction.value > _MAX_UINT256:
        raise InvalidTransaction(FUNDS_TEXT)
    _check_gas(transaction, fork)
    tip = transaction.max_priority_fee_per_gas
    if rules.is_local and tip < MIN_LOCAL_TIP:
        raise InvalidTransaction(
            f"transaction gas price below minimum: gas tip cap {tip}, "
            f"minimum needed {MIN_LOCAL_TIP}"
        )
    if transaction.type == BLOB:
        _check_blobs(transaction, submission.sidecar, fork)
    if transaction.type == SET_CODE and not transaction.authorization_list:
        raise InvalidTransaction(
            "set code tx must have at least one authorization tuple"
        )


def _check_fee_cap(transaction: Transaction) -> None:
    fee = transaction.max_fee_per_gas * transaction.gas
    if fee > LOCAL_FEE_CAP:
        raise InvalidTransaction(
            f"tx fee ({fee / 10**18:.2f} ether) exceeds the configured cap "
            f"({LOCAL_FEE_CAP / 10**18:.2f} ether)"
        )


def _check_type(transaction: Transaction, fork: Fork) -> None:
    kind = transaction.type
    if kind not in fork.transaction_types:
        name = _FORK_OF_TYPE[kind] if fork.has_access_lists else "Berlin"
        raise InvalidTransaction(
            f"transaction type not supported: type {kind} rejected, "
            f"pool not yet in {name}"
        )


def _check_gas_limits(transaction: Transaction, rules: HeadRules) -> None:
    fork, gas, size = rules.fork, transaction.gas, len(transaction.data)
    limit = fork.max_init_code_size
    if transaction.to == CREATE_ADDRESS and limit is not None and size > limit:
        raise InvalidTransaction(
            f"max initcode size exceeded: code size {size} limit {limit}"
        )
    cap = fork.max_transaction_gas
    if cap is not None and gas > cap:
        raise InvalidTransaction(
            f"transaction gas limit too high (cap: {cap}, tx: {gas})"
        )
    if gas > rules.gas_limit:
        raise InvalidTransaction("exceeds block gas limit")


def _check_fees(transaction: Transaction) -> None:
    fee, tip = transaction.max_fee_per_gas, transaction.max_priority_fee_per_gas
    if fee > _MAX_UINT256:
        raise InvalidTransaction("max fee per gas higher than 2^256-1")
    if tip > _MAX_UINT256:
        raise InvalidTransaction("max priority fee per gas higher than 2^256-1")
    if tip > fee:
        raise InvalidTransaction("max priority fee per gas higher than max fee per gas")


def check_signature(transaction: Transaction, chain_id: int) -> None:
    """Check a transaction's chain and signature. Recovers and caches its sender.

    Raises: InvalidTransaction.
    """
    try:
        checks.check_signature(transaction, chain_id)
    except checks.CallRejected as error:
        raise InvalidTransaction(f"invalid sender: {error.text}") from None


def _check_gas(transaction: Transaction, fork: Fork) -> None:
    gas = transaction.gas
    needed, floor = intrinsic_gas(transaction, fork), floor_gas(transaction, fork)
    if gas < needed:
        raise InvalidTransaction(
            f"intrinsic gas too low: gas {gas}, minimum needed {needed}"
        )
    if gas < floor:
        raise InvalidTransaction(f"{FLOOR_TEXT}: gas {gas}, minimum needed {floor}")
    cap = fork.max_execution_gas
    if cap is not None and max(needed, floor) > cap:
        raise InvalidTransaction(
            f"{FLOOR_TEXT}: intrinsic cost {needed}, floor: {floor}"
        )


def _check_blobs(transaction: Transaction, sidecar: Sidecar | None, fork: Fork) -> None:
    """Check a blob transaction's sidecar, apart from its proofs.

    From Osaka on, geth converts sidecars of version 0. Before Osaka, it accepts only those
    of version 1, and this service both.
    """
    fee = transaction.max_fee_per_blob_gas
    if fee < MIN_BLOB_FEE:
        raise InvalidTransaction(
            f"transaction gas price below minimum: blob fee cap {fee}, "
            f"minimum needed {MIN_BLOB_FEE}"
        )
    if sidecar is None:
        raise InvalidTransaction("missing sidecar in blob transaction")
    hashes, commitments = transaction.blob_versioned_hashes, sidecar.commitments
    if len(commitments) != len(hashes):
        raise InvalidTransaction(
            f"invalid number of {len(commitments)} blob commitments "
            f"compared to {len(hashes)} blob hashes"
        )
    for index, (given, commitment) in enumerate(zip(hashes, commitments, strict=True)):
        computed = bytes((_BLOB_HASH_VERSION,)) + sha256(commitment).digest()[1:]
        if computed != given:
            raise InvalidTransaction(
                f"blob {index}: computed hash 0x{computed.hex()} "
                f"mismatches transaction one 0x{given.hex()}"
            )
    if len(hashes) > MAX_BLOBS:
        raise InvalidTransaction(
            f"transaction blob limit exceeded: blob count {len(hashes)}, "
            f"limit {MAX_BLOBS}"
        )
    blobs, proofs = len(sidecar.blobs), len(sidecar.proofs)
    is_converted = sidecar.version == 0 and fork.has_cell_proofs
    each = CELLS_PER_BLOB if sidecar.version or is_converted else 1
    if is_converted:
        proofs = blobs * each
    if proofs != len(commitments) * each:
        raise InvalidTransaction(
            f"Wrong sidecar format: invalid number of {proofs} blob proofs "
            f"expected {len(commitments) * each}"
        )
    if not blobs:
        raise InvalidTransaction("blobless blob transaction")
    if blobs != len(commitments):
        raise InvalidTransaction(
            f"invalid number of {blobs} blobs compared to {len(commitments)} commitments"
        )
