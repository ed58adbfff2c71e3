"""Requests for proofs of accounts and slots, and for the state inside a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evm.execution import BEACON_ROOTS_ADDRESS, HISTORY_STORAGE_ADDRESS
from tests.golden.calls import Kinds, by_tag, malformed
from tests.golden.chains import Chain
from tests.golden.recording import Call
from tests.nodeapi.chain.verifying import verify_chain

GROUPS = ("proofs", "block states")

_RANGE_METHOD = "debug_storageRangeAt"

_KINDS: Kinds = {
    "eth_getProof": "address keys block",
    "debug_intermediateRoots": "hash options",
    "debug_getModifiedAccountsByHash": "hash",
    "debug_getModifiedAccountsByNumber": "plain",
    _RANGE_METHOD: "hash plain address bytes plain",
}
"""The kinds of parameters of each method that both sides have."""

_SYSTEM_CONTRACTS = (BEACON_ROOTS_ADDRESS, HISTORY_STORAGE_ADDRESS)

_ACCOUNTS_PER_BLOCK = 3
_SLOTS_PER_BLOCK = 2
_RANGE = 5


def calls_to(chain: Chain) -> Iterator[Call]:
    """Yield every request to a chain, in an order that is always the same."""
    verified, _ = verify_chain(chain.genesis, b"".join(chain.raw))
    for block, result in zip(chain.blocks, verified, strict=True):
        number, name = block.header.number, "0x" + block.header.hash.hex()
        before = "0x" + block.header.parent_hash.hex()
        storage = result.changes.storage
        for account in sorted(result.changes.accounts)[:_ACCOUNTS_PER_BLOCK]:
            address = "0x" + account.hex()
            slots = sorted(storage.get(account, ()))[:_SLOTS_PER_BLOCK]
            keys = [f"0x{slot:064x}" for slot in slots]
            for place in (hex(number - 1), {"blockHash": name}):
                yield Call("proofs", "eth_getProof", [address, keys, place])
        for account in sorted(storage)[:_ACCOUNTS_PER_BLOCK]:
            # geth returns the storage before the block for any index. This service
            # returns that before the transaction, after the block's system calls.
            if account in _SYSTEM_CONTRACTS or not block.transactions:
                continue
            params: list[Any] = [name, 0, "0x" + account.hex(), "0x", _RANGE]
            yield Call("block states", _RANGE_METHOD, params)
        calls: list[tuple[str, *tuple[Any, ...]]] = [
            ("debug_intermediateRoots", name, {}),
            ("debug_getModifiedAccountsByHash", name),
            ("debug_getModifiedAccountsByHash", before, name),
            ("debug_getModifiedAccountsByNumber", number),
            ("debug_getModifiedAccountsByNumber", number - 1, number),
        ]
        for method, *params in calls:
            yield Call("block states", method, params)
    yield from by_tag(_KINDS, len(chain.blocks))
    yield from malformed(_KINDS, chain.blocks)
