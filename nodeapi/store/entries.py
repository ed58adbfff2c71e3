"""The answer for a block's transactions: one entry for each, in their order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

_BEFORE_HASH = b'{"txHash":"0x'
_AFTER_HASH = b'","result":'

_ENTRY_BYTES = len(_BEFORE_HASH) + 64 + len(_AFTER_HASH) + 1


def entry_start(transaction_hash: bytes) -> bytes:
    """Return what an entry begins with; its result and a brace follow."""
    return b"%s%s%s" % (_BEFORE_HASH, transaction_hash.hex().encode(), _AFTER_HASH)


def entry(transaction_hash: bytes, result: bytes) -> bytes:
    """Return a transaction's entry."""
    return b"%s%s}" % (entry_start(transaction_hash), result)


def of_many(hashes: bytes, results: Iterable[bytes]) -> list[bytes]:
    """Return the entries of transactions, whose hashes stand one after the other."""
    digits = hashes.hex().encode()
    return [
        b"%s%s%s%s}" % (_BEFORE_HASH, digits[at : at + 64], _AFTER_HASH, result)
        for at, result in zip(count(0, 64), results, strict=False)
    ]


def array(entries: Iterable[bytes]) -> bytes:
    """Return the answer that consists of these entries."""
    return b"[" + b",".join(entries) + b"]"


def array_size(length: int, results_size: int) -> int:
    """Return the bytes of an answer of `length` entries, with so large results."""
    commas = max(length - 1, 0)
    return 2 + commas + length * _ENTRY_BYTES + results_size
