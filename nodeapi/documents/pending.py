"""Conversion of upstreams' pending blocks and transactions to this service's format.

The members that are unknown until a block is mined are null, such as its hash. So are the
members of a transaction that name its block. geth also returns null for the miner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from nodeapi.upstreams.quantities import (
    BLOCK_BITS,
    TRANSACTION_BITS,
    WITHDRAWAL_BITS,
    quantity,
    require_quantities,
)

_NULL_IN_BLOCK = dict.fromkeys(("hash", "logsBloom", "nonce", "number"))
_NULL_IN_TRANSACTION = dict.fromkeys(
    ("blockHash", "blockNumber", "blockTimestamp", "transactionIndex")
)


@dataclass(frozen=True, slots=True)
class PendingBlock:
    """A pending block as JSON.

    hashes: the block object with transaction hashes.
    full: the block object with transaction objects.
    transactions: the transaction objects.
    """

    hashes: bytes
    full: bytes
    transactions: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Approximate number of bytes that the fields take together."""
        return len(self.hashes) + 2 * len(self.full)


_NOT_IN_HEADER = ("totalDifficulty", "size", "uncles", "withdrawals", "transactions")


def pending_header(block: PendingBlock) -> bytes:
    """Return the header object of a pending block as JSON."""
    members = orjson.loads(block.hashes)
    for name in _NOT_IN_HEADER:
        members.pop(name, None)
    return orjson.dumps(members)


def pending_transaction(found: Any) -> bytes:
    """Return an upstream's transaction object as JSON, with null for its block's members.

    Raises: ValueError if `found` is not a transaction object, or has a number that is too
        large.
    """
    return orjson.dumps(_pending_transaction(found))


def pending_block(found: Any, total_difficulty: int | None) -> PendingBlock:
    """Convert an upstream's pending block, which has transaction objects.

    total_difficulty: the parent's total difficulty; None to omit `totalDifficulty`.

    Raises: ValueError if `found` is not a block object, or has a number that is too large.
    """
    if not isinstance(found, dict) or not isinstance(found.get("transactions"), list):
        raise ValueError("no block object")
    require_quantities(found, BLOCK_BITS)
    for withdrawal in _objects(found, "withdrawals"):
        require_quantities(withdrawal, WITHDRAWAL_BITS)
    block = {**found, **_NULL_IN_BLOCK}
    block.pop("totalDifficulty", None)
    if total_difficulty is not None:
        total = total_difficulty + quantity(found.get("difficulty", "0x0"))
        block = {"totalDifficulty": hex(total), **block}
    transactions = [_pending_transaction(each) for each in block.pop("transactions")]
    # The transactions are the last member, as in stored documents.
    hashes = [each["hash"] for each in transactions]
    return PendingBlock(
        orjson.dumps({**block, "transactions": hashes}),
        orjson.dumps({**block, "transactions": transactions}),
        tuple(map(orjson.dumps, transactions)),
    )


def _pending_transaction(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict) or not isinstance(found.get("hash"), str):
        raise ValueError("no transaction object")
    require_quantities(found, TRANSACTION_BITS)
    for authorization in _objects(found, "authorizationList"):
        require_quantities(authorization, TRANSACTION_BITS)
    return {**found, **_NULL_IN_TRANSACTION}


def _objects(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a member that is a list of objects, empty if it is absent or null.

    Raises: ValueError if it is anything else.
    """
    found = document.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{name}: no list of objects")
    return found
