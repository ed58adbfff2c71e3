"""Requests for accounts, fees, headers and raw transactions and receipts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.golden.calls import Kinds, by_tag, malformed
from tests.golden.chains import Chain
from tests.golden.recording import Call
from tests.nodeapi.chain.verifying import verify_chain

GROUPS = ("accounts", "fees", "headers")

_KINDS: Kinds = {
    "eth_accounts": "",
    "eth_getBalance": "address block",
    "eth_getCode": "address block",
    "eth_getTransactionCount": "address block",
    "eth_getHeaderByHash": "hash",
    "eth_getHeaderByNumber": "number",
    "eth_getRawTransactionByHash": "hash",
    "eth_getRawTransactionByBlockHashAndIndex": "hash index",
    "eth_getRawTransactionByBlockNumberAndIndex": "number index",
    "debug_getRawReceipts": "block",
    "eth_blobBaseFee": "",
    "eth_config": "",
    "eth_feeHistory": "count number percentiles",
    "eth_gasPrice": "",
    "eth_maxPriorityFeePerGas": "",
    "net_peerCount": "",
}
"""The kinds of parameters of each method that both sides have."""

_ACCOUNTS_PER_BLOCK = 6
_TRANSACTIONS_PER_BLOCK = 2
_PERCENTILES = [0, 5.5, 50, 99.9, 100]


def calls_to(chain: Chain) -> Iterator[Call]:
    """Yield every request to a chain, in an order that is always the same."""
    yield from _accounts(chain)
    yield from _blocks(chain)
    yield from _fees(chain)
    yield from by_tag(_KINDS, len(chain.blocks))
    yield from malformed(_KINDS, chain.blocks)


def _accounts(chain: Chain) -> Iterator[Call]:
    """Yield changed accounts before and after the block that changed them."""
    verified, _ = verify_chain(chain.genesis, b"".join(chain.raw))
    for block, result in zip(chain.blocks, verified, strict=True):
        before = hex(block.header.number - 1)
        after = {"blockHash": "0x" + block.header.hash.hex()}
        for account in sorted(result.changes.accounts)[:_ACCOUNTS_PER_BLOCK]:
            for method in ("eth_getBalance", "eth_getCode", "eth_getTransactionCount"):
                for place in (before, after):
                    yield Call("accounts", method, ["0x" + account.hex(), place])


def _blocks(chain: Chain) -> Iterator[Call]:
    """Yield the header, receipts and transactions of each block."""
    raw = "eth_getRawTransactionBy"
    for block in chain.blocks:
        number, name = hex(block.header.number), "0x" + block.header.hash.hex()
        calls: list[tuple[str, *tuple[Any, ...]]] = [
            ("eth_getHeaderByHash", name),
            ("eth_getHeaderByNumber", number),
            ("debug_getRawReceipts", number if block.header.number % 2 else name),
            (f"{raw}BlockNumberAndIndex", number, hex(len(block.transactions))),
        ]
        for index, transaction in enumerate(block.transactions):
            if index < _TRANSACTIONS_PER_BLOCK:
                calls += [
                    (f"{raw}Hash", "0x" + transaction.hash.hex()),
                    (f"{raw}BlockHashAndIndex", name, hex(index)),
                    (f"{raw}BlockNumberAndIndex", number, hex(index)),
                ]
        for method, *params in calls:
            yield Call("headers", method, params)


def _fees(chain: Chain) -> Iterator[Call]:
    """Yield histories of fees up to each block, and up to the newest one."""
    for block in chain.blocks:
        number = hex(block.header.number)
        for count, rewards in (("0x3", _PERCENTILES), (1, None)):
            yield Call("fees", "eth_feeHistory", [count, number, rewards])
    for count in ("0x400", "1025"):
        yield Call("fees", "eth_feeHistory", [count, "latest", []])
