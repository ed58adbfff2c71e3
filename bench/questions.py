"""The requests of each benchmark case, for a chain of token transfers.

Each case has many different requests, which are sent in rotation, so that the result
does not depend on a single row or cache entry.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.token_chain import TOKEN
from nodeapi.models import Block, StorageVersion

SMALL_TRANSFERS, FULL_TRANSFERS = 1, 120
"""Transfers of a small and of a large block: about 1.8 KB with hashes, and 100 KB."""

SMALL_BLOCKS, FULL_BLOCKS = 200, 20
ROTATION = 200


@dataclass(frozen=True, slots=True)
class Case:
    """The calls of one measured case."""

    name: str
    bodies: list[bytes]
    """JSON-RPC requests, sent in turn."""

    def requests(self, path: str) -> list[str]:
        """Return the case's HTTP requests as text. path: the URL path with the key."""
        return [http_request(path, body) for body in self.bodies]


def http_request(path: str, body: bytes) -> str:
    """Return a complete HTTP request as text, in the load generator's format."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", body.decode("latin-1")])


@dataclass(frozen=True, slots=True)
class Subject:
    """The blocks, transactions and slots of a chain that requests name, in hex."""

    contract: str
    slots: list[str]
    """Slots of the contract that are not zero."""
    small: list[str]
    """Hashes of small blocks."""
    full: list[str]
    """Hashes of large blocks."""
    numbers: Sequence[int]
    """Numbers of blocks below the head, at which slots are read."""


def our_subject(slug: str) -> Subject:
    """Return the blocks, transactions and slots of a stored network for requests."""
    blocks = Block.objects.filter(network__slug=slug, is_canonical=True)
    return Subject(
        contract=f"0x{TOKEN.hex()}",
        slots=_slots(slug),
        small=_hashes(blocks, SMALL_TRANSFERS),
        full=_hashes(blocks, FULL_TRANSFERS),
        numbers=range(SMALL_BLOCKS // 2, SMALL_BLOCKS),
    )


def cases(subject: Subject) -> list[Case]:
    """Return all cases for a chain. The names of the cases do not depend on the chain."""
    chance = random.Random(1)
    contract, small, full = subject.contract, subject.small, subject.full
    by_hash = "eth_getBlockByHash"
    transaction = "eth_getTransactionByBlockHashAndIndex"
    storage = "eth_getStorageAt"
    at_latest = [call(storage, contract, slot, "latest") for slot in subject.slots]
    return [
        Case("eth_chainId", [call("eth_chainId")]),
        Case("eth_blockNumber", [call("eth_blockNumber")]),
        Case(f"{storage}, latest", at_latest),
        Case(
            f"{storage}, by number",
            [
                call(storage, contract, slot, hex(chance.choice(subject.numbers)))
                for slot in subject.slots
            ],
        ),
        Case(f"{by_hash}, hashes", [call(by_hash, h, False) for h in small]),
        Case(f"{by_hash}, full", [call(by_hash, h, True) for h in full]),
        Case(
            transaction,
            [
                call(transaction, chance.choice(full), hex(i % FULL_TRANSFERS))
                for i in range(ROTATION)
            ],
        ),
    ]


def _hashes(blocks: Any, transactions: int) -> list[str]:
    found = blocks.filter(transaction_count=transactions).values_list("hash", flat=True)
    return [f"0x{bytes(block_hash).hex()}" for block_hash in found]


def _slots(slug: str) -> list[str]:
    """Return slots of the token that are not zero, including frequently written ones."""
    written: Iterable[Any] = (
        StorageVersion.objects.filter(network__slug=slug, address=TOKEN)
        .order_by("-block_number", "slot")
        .values_list("slot", flat=True)[: 4 * ROTATION]
    )
    unique = list(dict.fromkeys(bytes(slot) for slot in written))
    return [hex(int.from_bytes(slot, "big")) for slot in unique[:ROTATION]]


def call(method: str, *params: object) -> bytes:
    """Return a JSON-RPC request."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(request, separators=(",", ":")).encode()
