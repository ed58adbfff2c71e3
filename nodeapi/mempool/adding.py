"""Writes of the local pool: a transaction is checked and added in one commit.

Additions to one network's pool are serialized by an advisory lock, because the rules
depend on the other transactions.

Source: go-ethereum v1.17.10, core/txpool/legacypool/legacypool.go (add, truncatePending,
truncateQueue), queue.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from evm.transactions import BLOB, Transaction
from nodeapi.documents.blocks import pending_transaction_document
from nodeapi.mempool.alive import ACCOUNT, LIFETIME, alive
from nodeapi.mempool.rules import (
    Authority,
    Pooled,
    Sender,
    authorities_of,
    check_replacement,
    check_sender,
    cost_of,
    executable,
)
from nodeapi.sending.decoding import Submission
from nodeapi.sending.rules import InvalidTransaction

MAX_PENDING = 5120
"""Maximum number of pending transactions of a network."""
MAX_QUEUED = 1024
"""Maximum number of queued transactions of a network."""
ACCOUNT_PENDING = 16
"""Number of an account's pending transactions that other accounts do not displace."""
ACCOUNT_QUEUED = 64
"""Maximum number of queued transactions of an account."""
SLOT_BYTES = 32 * 1024
"""Size of a place in the pool. A transaction takes one place for each started SLOT_BYTES."""
MAX_BYTES = 16 * 2**20
"""Size of a network's pool without sidecars. geth only counts places."""
MAX_BLOB_BYTES = 64 * 2**20
"""Size of a network's blob transactions with their sidecars. geth's default is 2.5 GB."""

LOCKS = 0x706F6F6C
"""The class of the advisory locks of pools."""

_POOLED = "hash, nonce, type, cost, fee, tip, blob_fee"
_ALIVE = alive("%(network)s")
_ALIVE_OF_SENDER = alive("%(network)s", "%(sender)s")

_DELETE_EXPIRED = f"""
    DELETE FROM nodeapi_pooledtransaction
    WHERE network_id = %(network)s AND at <= now() - interval '{LIFETIME}'
"""
_DELETE_OUTDATED = """
    DELETE FROM nodeapi_pooledtransaction
    WHERE network_id = %(network)s AND sender = %(sender)s
        AND (nonce < %(nonce)s OR cost > %(balance)s)
"""
_SENDER = ACCOUNT.format(network="%(network)s", address="%(sender)s")
_IS_KNOWN = """
    SELECT 1 FROM nodeapi_pooledtransaction
    WHERE network_id = %(network)s AND hash = %(hash)s
"""
_POOLED_OF_SENDER = f"""
    SELECT {_POOLED} FROM nodeapi_pooledtransaction
    WHERE network_id = %(network)s AND sender = %(sender)s ORDER BY nonce
"""
_IS_AUTHORITY = """
    SELECT 1 FROM nodeapi_pooledtransaction
    WHERE network_id = %(network)s AND %(sender)s = ANY(authorities) LIMIT 1
"""
_AUTHORITY = f"""
    SELECT count(*) FILTER (WHERE type <> {BLOB}),
        count(*) FILTER (WHERE type = {BLOB})
    FROM ({_ALIVE_OF_SENDER}) t
"""
_TAKEN = f"""
    SELECT count(*), coalesce(sum((size + {SLOT_BYTES - 1}) / {SLOT_BYTES}), 0),
        coalesce(sum(size), 0), coalesce(sum(octet_length(network_form)), 0)
    FROM nodeapi_pooledtransaction WHERE network_id = %(network)s
"""
_CHEAPEST = f"""
    SELECT hash, fee, tip, size, octet_length(network_form), is_pending FROM ({_ALIVE}) t
    ORDER BY fee, tip, nonce DESC
"""
_KEEP_ALIVE = f"""
    DELETE FROM nodeapi_pooledtransaction WHERE network_id = %(network)s
        AND id NOT IN (SELECT id FROM ({_ALIVE}) t)
"""
_DELETE = """
    DELETE FROM nodeapi_pooledtransaction
    WHERE network_id = %(network)s AND hash = ANY(%(hashes)s)
"""
_INSERT = """
    INSERT INTO nodeapi_pooledtransaction (network_id, hash, sender, nonce, type, cost,
        fee, tip, blob_fee, authorities, size, raw, network_form, document)
    VALUES (%(network)s, %(hash)s, %(sender)s, %(nonce)s, %(type)s, %(cost)s, %(fee)s,
        %(tip)s, %(blob_fee)s, %(authorities)s::bytea[], %(size)s, %(raw)s,
        %(network_form)s, %(document)s)
"""
_LIMIT_ACCOUNT = f"""
    DELETE FROM nodeapi_pooledtransaction WHERE id IN (
        SELECT id FROM ({_ALIVE_OF_SENDER}) t WHERE NOT is_pending
        ORDER BY nonce OFFSET {ACCOUNT_QUEUED})
"""
_LIMIT_PENDING = f"""
    DELETE FROM nodeapi_pooledtransaction WHERE id IN (
        SELECT id FROM ({_ALIVE}) p
        WHERE is_pending AND place > {ACCOUNT_PENDING} ORDER BY place DESC
        LIMIT (SELECT greatest(count(*) - %(limit)s, 0)
            FROM ({_ALIVE}) t WHERE is_pending))
"""
"""Deletes transactions of the accounts with the most pending ones."""
_LIMIT_QUEUED = f"""
    DELETE FROM nodeapi_pooledtransaction WHERE id IN (
        SELECT id FROM (SELECT *, max(at) OVER (PARTITION BY sender) AS active_at
            FROM ({_ALIVE}) t WHERE NOT is_pending) q
        ORDER BY active_at, sender, nonce DESC
        LIMIT (SELECT greatest(count(*) - %(limit)s, 0)
            FROM ({_ALIVE}) t WHERE NOT is_pending))
"""
"""Removes transactions of the accounts that have sent nothing for the longest time."""


def add_transaction(
    connection: psycopg.Connection[Any], network_id: int, submission: Submission
) -> None:
    """Add a transaction to a network's local pool, if the rules allow it.

    submission: follows the rules of `nodeapi.sending`.

    Raises: InvalidTransaction; psycopg.Error.
    """
    with connection.transaction(), connection.cursor() as cursor:
        _Addition(cursor, network_id, submission).run()


class _Addition:
    """One addition to a pool, in a database transaction."""

    def __init__(
        self, cursor: psycopg.Cursor[Any], network_id: int, submission: Submission
    ) -> None:
        self._cursor = cursor
        self._added = added = submission.transaction
        self._network_form = submission.raw if added.type == BLOB else b""
        self._values = {
            "network": network_id,
            "hash": added.hash,
            "sender": added.sender,
        }

    def run(self) -> None:
        """Check and add the transaction. Raises: InvalidTransaction."""
        added = self._added
        network = self._values["network"]
        self._cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCKS, network])
        self._execute(_DELETE_EXPIRED)
        nonce, balance, has_code = self._account()
        self._execute(_DELETE_OUTDATED, nonce=nonce, balance=balance)
        if self._rows(_IS_KNOWN):
            raise InvalidTransaction("already known")
        sender = Sender(
            nonce,
            balance,
            has_code,
            [_pooled(row) for row in self._rows(_POOLED_OF_SENDER)],
            bool(self._rows(_IS_AUTHORITY)),
        )
        authorities = authorities_of(added)
        former = check_sender(
            added, sender, {each: self._authority(each) for each in authorities}
        )
        self._make_room(sender, former)
        if former is not None:
            check_replacement(added, former)
            self._delete([former.hash])
        self._insert(authorities)
        self._keep_limits()

    def _account(self) -> tuple[int, int, bool]:
        """Return nonce, balance and whether there is code, of the sender."""
        for nonce, balance, code_hash in self._rows(_SENDER):
            return int(nonce or 0), int(balance or 0), code_hash is not None
        return 0, 0, False

    def _authority(self, address: bytes) -> Authority:
        (counts,) = self._rows(_AUTHORITY, sender=address)
        return Authority(*counts)

    def _make_room(self, sender: Sender, former: Pooled | None) -> None:
        """Delete the transactions with the lowest fees, if the pool is full.

        Raises: InvalidTransaction.
        """
        added = self._added
        size, blob_size = len(added.raw), len(self._network_form)
        room = self._room().without(size, blob_size)
        if not room.is_overdrawn:
            return
        self._execute(_KEEP_ALIVE)
        room = self._room().without(size, blob_size)
        offered = added.max_fee_per_gas, added.max_priority_fee_per_gas
        is_gapped = _is_gapped(added, sender)
        dropped: list[bytes] = []
        for name, fee, tip, freed, blob_freed, is_pending in self._rows(_CHEAPEST):
            if not room.is_overdrawn:
                break
            if former is not None and bytes(name) == former.hash:
                continue
            if not blob_freed and room.lacks_only_blob_bytes:
                continue
            if (fee, tip) >= offered:
                text = "txpool is full" if dropped else "transaction underpriced"
                raise InvalidTransaction(text)
            if is_pending and is_gapped:
                raise InvalidTransaction("future transaction tries to replace pending")
            room = room.with_freed(freed, blob_freed)
            dropped.append(bytes(name))
        if room.is_overdrawn:
            raise InvalidTransaction("txpool is full")
        self._delete(dropped)

    def _room(self) -> _Room:
        ((_, slots, used, blob_used),) = self._rows(_TAKEN)
        return _Room(
            MAX_PENDING + MAX_QUEUED - slots,
            MAX_BYTES - used,
            MAX_BLOB_BYTES - blob_used,
        )

    def _insert(self, authorities: Sequence[bytes]) -> None:
        added = self._added
        self._execute(
            _INSERT,
            nonce=added.nonce,
            type=added.type,
            cost=cost_of(added),
            fee=added.max_fee_per_gas,
            tip=added.max_priority_fee_per_gas,
            blob_fee=added.max_fee_per_blob_gas,
            authorities=list(authorities),
            size=len(added.raw),
            raw=added.raw,
            network_form=self._network_form,
            document=pending_transaction_document(added),
        )

    def _keep_limits(self) -> None:
        """Delete queued and pending transactions beyond the limits.

        The added transaction may be one of them, which is not an error in geth either.
        """
        if self._added.type != BLOB:
            self._execute(_LIMIT_ACCOUNT)
        ((count, *_),) = self._rows(_TAKEN)
        if count > MAX_QUEUED:
            self._execute(_LIMIT_QUEUED, limit=MAX_QUEUED)
        if count > MAX_PENDING:
            self._execute(_LIMIT_PENDING, limit=MAX_PENDING)

    def _delete(self, hashes: Sequence[bytes]) -> None:
        self._execute(_DELETE, hashes=list(hashes))

    def _execute(self, sql: str, **values: Any) -> None:
        self._cursor.execute(sql, {**self._values, **values})

    def _rows(self, sql: str, **values: Any) -> list[Any]:
        self._execute(sql, **values)
        rows: list[Any] = self._cursor.fetchall()
        return rows


def _pooled(row: Any) -> Pooled:
    name, nonce, kind, cost, fee, tip, blob_fee = row
    return Pooled(
        bytes(name),
        int(nonce),
        kind == BLOB,
        int(cost),
        int(fee),
        int(tip),
        int(blob_fee),
    )


def _slots(size: int) -> int:
    return -(-size // SLOT_BYTES)


@dataclass(frozen=True, slots=True)
class _Room:
    """The room left in a pool. A negative number means that it is exceeded.

    bytes: without sidecars. blob_bytes: of blob transactions, with their sidecars.
    """

    slots: int
    bytes: int
    blob_bytes: int

    def without(self, size: int, blob_size: int) -> _Room:
        """Return the room after a transaction has been added."""
        return _Room(
            self.slots - _slots(size), self.bytes - size, self.blob_bytes - blob_size
        )

    def with_freed(self, size: int, blob_size: int) -> _Room:
        """Return the room after a transaction has been removed."""
        return _Room(
            self.slots + _slots(size), self.bytes + size, self.blob_bytes + blob_size
        )

    @property
    def is_overdrawn(self) -> bool:
        return min(self.slots, self.bytes, self.blob_bytes) < 0

    @property
    def lacks_only_blob_bytes(self) -> bool:
        return self.blob_bytes < 0 <= min(self.slots, self.bytes)


def _is_gapped(added: Transaction, sender: Sender) -> bool:
    """Return whether the pool lacks a nonce below that of an added transaction."""
    own = sender.of_kind(added.type == BLOB)
    return added.nonce > sender.nonce + len(executable(own, sender.nonce))
