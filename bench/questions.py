"""What the endpoint is asked: the requests of each case, for a chain of token transfers.

The requests of a case rotate, so that no single row or cache entry is measured.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bench.token_chain import TOKEN
from nodeapi.models import Block, StorageVersion

SMALL_TRANSFERS, FULL_TRANSFERS = 1, 120
"""Transfers of a small and of a large block: about 1.8 KB with hashes, and 100 KB."""

SMALL_BLOCKS, FULL_BLOCKS = 200, 20
ROTATION = 200
BATCH_CALLS = 100


@dataclass(frozen=True, slots=True)
class Case:
    """Calls of one kind."""

    name: str
    bodies: list[bytes]
    """JSON-RPC requests, sent in turn."""
    calls: int = 1
    """Calls in each request."""

    def requests(self, path: str) -> list[str]:
        """Return the HTTP requests to a path."""
        return [http_request(path, body) for body in self.bodies]


def http_request(path: str, body: bytes) -> str:
    """Return a whole HTTP request, as the load generator wants it."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head + body.decode("latin-1")


def cases() -> list[Case]:
    """Return all cases, with hashes and slots of the network in the database."""
    blocks = Block.objects.filter(is_canonical=True)
    small = _hashes(blocks, SMALL_TRANSFERS)
    full = _hashes(blocks, FULL_TRANSFERS)
    slots = _slots()
    chance = random.Random(1)
    numbers = range(SMALL_BLOCKS // 2, SMALL_BLOCKS)
    token = f"0x{TOKEN.hex()}"
    by_hash = "eth_getBlockByHash"
    transaction = "eth_getTransactionByBlockHashAndIndex"
    return [
        Case("eth_chainId", [_call("eth_chainId")]),
        Case("eth_blockNumber", [_call("eth_blockNumber")]),
        Case(
            "eth_getStorageAt, latest",
            [_call("eth_getStorageAt", token, slot, "latest") for slot in slots],
        ),
        Case(
            "eth_getStorageAt, by number",
            [
                _call("eth_getStorageAt", token, slot, hex(chance.choice(numbers)))
                for slot in slots
            ],
        ),
        Case(f"{by_hash}, hashes", [_call(by_hash, h, False) for h in small]),
        Case(f"{by_hash}, full", [_call(by_hash, h, True) for h in full]),
        Case(
            transaction,
            [
                _call(transaction, chance.choice(full), hex(i % FULL_TRANSFERS))
                for i in range(ROTATION)
            ],
        ),
        _batch(transaction, full, chance),
    ]


def _batch(method: str, hashes: list[str], chance: random.Random) -> Case:
    """Return batches of transaction look-ups."""
    batches = [
        [
            _request(
                method,
                chance.choice(hashes),
                hex(chance.randrange(FULL_TRANSFERS)),
                request_id=i,
            )
            for i in range(BATCH_CALLS)
        ]
        for _ in range(10)
    ]
    bodies = [json.dumps(batch, separators=(",", ":")).encode() for batch in batches]
    return Case(f"batch of {BATCH_CALLS} {method}", bodies, calls=BATCH_CALLS)


def _hashes(blocks: Any, transactions: int) -> list[str]:
    found = blocks.filter(transaction_count=transactions).values_list("hash", flat=True)
    return [f"0x{bytes(block_hash).hex()}" for block_hash in found]


def _slots() -> list[str]:
    """Return slots of the token that hold something, among them often written ones."""
    written: Iterable[Any] = (
        StorageVersion.objects.filter(address=TOKEN)
        .order_by("-block_number", "slot")
        .values_list("slot", flat=True)[: 4 * ROTATION]
    )
    unique = list(dict.fromkeys(bytes(slot) for slot in written))
    return [hex(int.from_bytes(slot, "big")) for slot in unique[:ROTATION]]


def _request(method: str, *params: object, request_id: int = 1) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def _call(method: str, *params: object) -> bytes:
    request = _request(method, *params)
    return json.dumps(request, separators=(",", ":")).encode()
