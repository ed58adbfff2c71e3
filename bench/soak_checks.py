"""Checks of what customers receive in the soak test: responses and notifications."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from eth_typing import Address

from abi.encoding import mapping_slot
from bench.soak_chain import STABLE_BLOCKS, TRANSFERS, Shown, SoakChain
from bench.token_chain import TOKEN

TOKEN_ADDRESS = f"0x{TOKEN.hex()}"
UNKNOWN = "0x" + "11" * 32
"""A hash that no transaction has."""

MOST_BEHIND = 6
"""Maximum lag of the served head in blocks (one a second) while no component is killed."""

SERVED_BLOCKS = 20
"""Blocks below the upstream's head that are always served, also while we are behind."""


class Wrong(Exception):
    """Raised for a response or a notification that contradicts the chain."""


class Question:
    """A call whose result can be checked against the chain."""

    def __init__(self, chain: SoakChain, chance: random.Random) -> None:
        """Choose a call."""
        self._chain = chain
        self._head = chain.head.number
        stable = max(self._head - SERVED_BLOCKS, 0)
        block = self._block = chain.line[chance.randint(0, stable)]
        holder = chance.choice([*chain.balances[block.number]])
        self._balance = chain.balances[block.number][holder]
        slot = f"0x{mapping_slot(Address(holder), 0):064x}"
        number = hex(block.number)
        self.method, self.params = chance.choice(
            [
                ("eth_blockNumber", []),
                ("eth_getBlockByNumber", ["latest", False]),
                ("eth_getBlockByNumber", [number, False]),
                ("eth_getBlockByHash", [block.hash, True]),
                ("eth_getBlockReceipts", [block.hash]),
                (
                    "eth_getTransactionByHash",
                    [chance.choice(block.transactions or [UNKNOWN])],
                ),
                ("eth_getStorageAt", [TOKEN_ADDRESS, slot, number]),
            ]
        )

    def check(self, result: Any, *, is_disturbed: bool) -> None:
        """Compare a result with the chain.

        is_disturbed: whether the head may be old, because something was killed.
        Raises: Wrong.
        """
        block = self._block
        match self.method:
            case "eth_blockNumber":
                self._check_head(int(result, 16), is_disturbed)
            case "eth_getBlockByNumber" if self.params[0] == "latest":
                shown = self._chain.known.get(result["hash"])
                self._require(shown is not None, result["hash"])
                self._check_head(int(result["number"], 16), is_disturbed)
                assert shown is not None
                self._check_block(result, shown)
            case "eth_getBlockByNumber" | "eth_getBlockByHash":
                self._require(result is not None, result)
                self._check_block(result, block)
            case "eth_getBlockReceipts":
                hashes = [each["transactionHash"] for each in result]
                self._require(hashes == block.transactions, hashes)
                places = {(each["blockHash"], each["status"]) for each in result}
                self._require(places <= {(block.hash, "0x1")}, places)
            case "eth_getTransactionByHash" if block.transactions:
                self._require(result["blockHash"] == block.hash, result)
                self._require(result["hash"] == self.params[0], result)
            case "eth_getTransactionByHash":
                self._require(result is None, result)
            case "eth_getStorageAt":
                wanted = self._balance
                self._require(int(result, 16) == wanted, f"{result}, not {wanted}")

    def _check_head(self, number: int, is_disturbed: bool) -> None:
        most = self._chain.head.number
        least = 0 if is_disturbed else self._head - MOST_BEHIND
        self._require(least <= number <= most, f"{number}, not {least} to {most}")

    def _check_block(self, found: dict[str, Any], shown: Shown) -> None:
        hashes = [
            each if isinstance(each, str) else each["hash"]
            for each in found["transactions"]
        ]
        self._require(
            (found["hash"], int(found["number"], 16), found["parentHash"], hashes)
            == (shown.hash, shown.number, shown.parent_hash, shown.transactions),
            found["hash"],
        )

    def _require(self, condition: bool, found: object) -> None:
        if not condition:
            raise Wrong(f"{self.method} {self.params}: {str(found)[:300]}")


class Events:
    """The notifications of one socket: each head and each log once, none missing.

    A head continues the line of heads, or replaces the newest ones by another branch.
    Each log of a block is sent when the block becomes canonical and again, with
    `removed`, when it no longer is.
    """

    def __init__(self, chain: SoakChain) -> None:
        self._chain = chain
        self._line: list[Shown] = []
        self._logs: dict[str, Counter[str]] = {}
        """How often each log of a block was sent, minus how often it was removed."""
        self._left: set[str] = set()
        """Blocks that a reorganisation has replaced, lately."""
        self.heads = 0
        self.logs = 0

    def head(self, document: dict[str, Any]) -> None:
        """Note a head. Raises: Wrong."""
        self.heads += 1
        shown = self._chain.known.get(document["hash"])
        if shown is None:
            raise Wrong(f"an unknown head: {document['hash']}")
        if any(each.hash == shown.hash for each in self._line):
            raise Wrong(f"head {shown.number} {shown.hash} twice")
        if self._line and shown.number > self._line[0].number:
            while self._line and self._line[-1].number >= shown.number:
                self._left.add(self._line.pop().hash)
            if not self._line or self._line[-1].hash != shown.parent_hash:
                raise Wrong(f"no head before {shown.number} {shown.hash}")
        elif self._line:
            self._line.clear()  # the branch begins below the first head
            self._logs.clear()
        self._left.discard(shown.hash)
        self._line.append(shown)
        self._check_old()

    def log(self, document: dict[str, Any]) -> None:
        """Note a log. Raises: Wrong."""
        self.logs += 1
        block, index = document["blockHash"], document["logIndex"]
        counts = self._logs.setdefault(block, Counter())
        counts[index] += -1 if document["removed"] else 1
        began = self._line[0].number if self._line else 0
        if int(document["blockNumber"], 16) > began + 1 and counts[index] not in (0, 1):
            raise Wrong(f"log {index} of {block}: {counts[index]} times")

    def _check_old(self) -> None:
        """Check the logs of blocks that are not replaced any more. Raises: Wrong."""
        if len(self._line) <= 2 * STABLE_BLOCKS:
            return
        old = self._line[2 : len(self._line) - STABLE_BLOCKS]
        sent = {each.hash: self._logs.pop(each.hash, Counter()) for each in old}
        del self._line[2 : len(self._line) - STABLE_BLOCKS]
        for block, counts in sent.items():
            if sorted(counts.values()) != [1] * TRANSFERS:
                raise Wrong(f"block {block} has the logs {dict(counts)}")
        lowest = self._line[2].number
        for block in [*self._left]:
            if self._chain.known[block].number < lowest:
                self._left.discard(block)
                counts = self._logs.pop(block, Counter())
                if any(counts.values()):
                    raise Wrong(f"block {block} keeps the logs {dict(counts)}")
