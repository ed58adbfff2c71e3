"""The JSON-RPC results of a node that has a chain, for nodes that are simulated.

    node = ChainNode(chain_id, genesis)
    node.show_blocks(*blocks)
    node.methods["eth_getBlockByNumber"]("latest", False)

The servers that send the results are elsewhere: the tests have one for HTTP and
WebSocket that can fail in many ways, the benchmarks one that runs in a process of its
own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from evm.blocks import Block, encode_block
from evm.receipts import Receipt
from nodeapi.documents.blocks import (
    block_document,
    transaction_document,
    uncle_document,
)

UNKNOWN_BLOCK = -32000
NOT_OFFERED = -32601
PRUNED = 4444


class Refused(Exception):
    """Raised by a method to answer with an error object: code, message and data."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class ChainNode:
    """The chain of a simulated node, and the node's claims.

    line: its canonical blocks by number. known: blocks by hash, also of other branches.
    safe, finalized: numbers of blocks, or blocks of any chain. None: there is none.
    has_debug: whether `debug_getRawBlock` is offered. pruned: blocks below this number
        are only known by their headers.
    unknown: hashes of blocks that are announced, but not found by hash yet.
    altered: block hash → the block that is sent instead, under the same hash if
        possible.
    receipts: block hash → receipts of its transactions. Blocks without receipts are not
        found by `eth_getBlockReceipts`.
    chain_id: as claimed by the node.
    """

    def __init__(self, chain_id: int, genesis: Block) -> None:
        self.chain_id = chain_id
        self.line: list[Block] = [genesis]
        self.known: dict[bytes, Block] = {genesis.header.hash: genesis}
        self.safe: int | Block | None = None
        self.finalized: int | Block | None = None
        self.has_debug = True
        self.pruned = 0
        self.unknown: set[bytes] = set()
        self.altered: dict[bytes, Block] = {}
        self.receipts: dict[bytes, list[Receipt]] = {}
        self._documents: dict[tuple[bytes, bool], dict[str, Any]] = {}
        self.methods: dict[str, Callable[..., Any]] = {
            "eth_chainId": lambda: hex(self.chain_id),
            "web3_clientVersion": lambda: "Simulator/1",
            "eth_getBlockByNumber": self._by_number,
            "eth_getBlockByHash": self._by_hash,
            "debug_getRawBlock": self._raw,
            "eth_getBlockReceipts": self._block_receipts,
            "eth_getUncleByBlockHashAndIndex": self._uncle,
        }

    def show_blocks(self, *blocks: Block) -> Block:
        """Make blocks canonical, in place of the present ones from their numbers on.

        Return the new head.
        """
        number = blocks[0].header.number
        self.known |= {block.header.hash: block for block in blocks}
        self.line = [*self.line[:number], *blocks]
        return self.head

    @property
    def head(self) -> Block:
        """The newest canonical block."""
        return self.line[-1]

    def head_document(self) -> dict[str, Any]:
        """Return the head as the result of `eth_getBlockByHash` with hashes only."""
        return self._document(self.head, full=False)

    # Methods

    def _by_number(self, name: str, full: bool) -> dict[str, Any] | None:
        if name in ("safe", "finalized"):
            tagged = getattr(self, name)
            if tagged is None:
                raise Refused(UNKNOWN_BLOCK, f"{name} block not found")
            block = tagged if isinstance(tagged, Block) else self.line[tagged]
            return self._document(block, full)
        number = len(self.line) - 1 if name == "latest" else int(name, 16)
        return (
            self._document(self.line[number], full) if number < len(self.line) else None
        )

    def _by_hash(self, name: str, full: bool) -> dict[str, Any] | None:
        block = self._find(name)
        if block is None:
            return None
        if full and block.header.number < self.pruned:
            raise Refused(PRUNED, "pruned history unavailable")
        return self._document(block, full)

    def _raw(self, name: str) -> str:
        if not self.has_debug:
            raise Refused(NOT_OFFERED, "the method debug_getRawBlock does not exist")
        block = self._find(name)
        if block is None:
            raise Refused(UNKNOWN_BLOCK, "block not found")
        if block.header.number < self.pruned:
            raise Refused(PRUNED, "pruned history unavailable")
        sent = self.altered.get(block.header.hash, block)
        return "0x" + encode_block(sent).hex()

    def _block_receipts(self, name: str) -> list[dict[str, Any]] | None:
        block = self._find(name)
        if block is None or block.header.hash not in self.receipts:
            return None
        if block.header.number < self.pruned:
            raise Refused(PRUNED, "pruned history unavailable")
        return [
            {
                "type": hex(receipt.type),
                "status": None if receipt.status is None else hex(receipt.status),
                "root": receipt.state_root and "0x" + receipt.state_root.hex(),
                "cumulativeGasUsed": hex(receipt.cumulative_gas_used),
                "logs": [
                    {
                        "address": "0x" + log.address.hex(),
                        "topics": ["0x" + topic.hex() for topic in log.topics],
                        "data": "0x" + log.data.hex(),
                    }
                    for log in receipt.logs
                ],
            }
            for receipt in self.receipts[block.header.hash]
        ]

    def _uncle(self, name: str, index: str) -> dict[str, Any] | None:
        block = self._find(name)
        if block is None or int(index, 16) >= len(block.uncles):
            return None
        uncle: dict[str, Any] = json.loads(uncle_document(block.uncles[int(index, 16)]))
        return uncle

    def _find(self, name: str) -> Block | None:
        wanted = bytes.fromhex(name[2:])
        return None if wanted in self.unknown else self.known.get(wanted)

    def _document(self, block: Block, full: bool) -> dict[str, Any]:
        key = block.header.hash, full
        block = self.altered.get(block.header.hash, block)
        if key not in self._documents or key[0] in self.altered:
            document = json.loads(block_document(block, 0)[0])
            document["hash"] = "0x" + key[0].hex()
            if full:
                document["transactions"] = [
                    json.loads(transaction_document(transaction, block.header, index))
                    for index, transaction in enumerate(block.transactions)
                ]
            self._documents[key] = document
        return self._documents[key]
