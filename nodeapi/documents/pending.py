"""Conversion of upstreams' pending blocks and transactions to this service's format.

The members that are unknown until a block is mined are null, such as its hash. So are the
members of a transaction that name its block. geth also returns null for the miner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

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

    Raises: ValueError if `found` is not a transaction object.
    """
    return orjson.dumps(_pending_transaction(found))


def pending_block(found: Any, total_difficulty: int | None) -> PendingBlock:
    """Convert an upstream's pending block, which has transaction objects.

    total_difficulty: the parent's total difficulty; None to omit `totalDifficulty`.

    Raises: ValueError if `found` is not a block object.
    """
    if not isinstance(found, dict) or not isinstance(found.get("transactions"), list):
        raise ValueError("no block object")
    block = {**found, **_NULL_IN_BLOCK}
    block.pop("totalDifficulty", None)
    if total_difficulty is not None:
        total = total_difficulty + int(str(found.get("difficulty", "0x0")), 16)
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
    return {**found, **_NULL_IN_TRANSACTION}
