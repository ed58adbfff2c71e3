"""Compares the service's responses about a block with geth's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from tests.golden.differences import expected, masked
from tests.golden.options import CHEAP
from tests.golden.recording import Call, Recording
from tests.golden.test_golden import difference

_NOTHING_RECORDED = Recording("", "", [])
_TRANSACTION_TRACES = (
    "callTracer withLog",
    "prestateTracer",
    "prestateTracer diffMode",
)


class Answering(Protocol):
    """A service or a node."""

    def batch(self, calls: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Return the responses, `{"result": …}` or `{"error": …}`, in the calls' order."""


class Comparison:
    """Compares blocks, and counts what was equal.

    equal: method → number of equal responses. kinds: transaction type → number.
    failed, created, logs: transactions that failed and created contracts, and their logs.
    """

    def __init__(self, service: Answering, geth: Answering) -> None:
        self._service = service
        self._geth = geth
        self.blocks = 0
        self.equal: Counter[str] = Counter()
        self.kinds: Counter[int] = Counter()
        self.failed = self.created = self.logs = 0

    def compare(self, first: int, last: int) -> None:
        """Compare every response about the blocks first to last.

        Raises: AssertionError with the first response that differs.
        """
        for number in range(first, last + 1):
            self._compare_block(hex(number))

    def summary(self) -> str:
        """Return a summary of the comparison, in a few lines."""
        kinds = ", ".join(f"type {kind}: {n}" for kind, n in sorted(self.kinds.items()))
        equal = ", ".join(f"{method}: {n}" for method, n in self.equal.items())
        return (
            f"{self.blocks} blocks; transactions: {kinds}; failed: {self.failed},"
            f" contracts created: {self.created}, logs: {self.logs}\n"
            f"{self.equal.total()} equal responses: {equal}"
        )

    def _compare_block(self, number: str) -> None:
        block, receipts = (
            answer["result"]
            for answer in self._geth.batch(
                [
                    ("eth_getBlockByNumber", number, False),
                    ("eth_getBlockReceipts", number),
                ]
            )
        )
        self.blocks += 1
        for receipt in receipts:
            self.kinds[int(receipt["type"], 16)] += 1
            self.failed += receipt["status"] == "0x0"
            self.created += receipt["contractAddress"] is not None
            self.logs += len(receipt["logs"])
        self.compare_calls(_calls(number, block))

    def compare_calls(self, calls: list[tuple[Any, ...]]) -> None:
        """Compare the responses to calls. Raises: AssertionError, as `compare`."""
        with ThreadPoolExecutor(1) as other:
            waiting = other.submit(self._geth.batch, calls)
            ours, geths = self._service.batch(calls), waiting.result()
        for (method, *params), our, geth in zip(calls, ours, geths, strict=True):
            wanted, _ = expected(Call("", method, params), geth, _NOTHING_RECORDED)
            ours_masked, wanted_masked = masked(our), masked(wanted)
            assert ours_masked == wanted_masked, (
                method,
                params,
                difference(ours_masked, wanted_masked),
            )
            self.equal[method] += 1


def _calls(number: str, block: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the calls about a block and its transactions."""
    block_hash, transactions = block["hash"], block["transactions"]
    calls: list[tuple[Any, ...]] = [
        ("eth_getBlockByNumber", number, True),
        ("eth_getBlockByNumber", number, False),
        ("eth_getBlockByHash", block_hash, True),
        ("eth_getBlockReceipts", block_hash),
        ("eth_getBlockTransactionCountByNumber", number),
        ("debug_getRawBlock", number),
        ("debug_getRawHeader", number),
    ]
    if not transactions:
        return [
            *calls,
            ("debug_traceBlockByHash", block_hash, {"tracer": "callTracer"}),
        ]
    for place, transaction in enumerate(transactions):
        calls += [
            ("eth_getTransactionByHash", transaction),
            ("eth_getTransactionReceipt", transaction),
            ("eth_getTransactionByBlockHashAndIndex", block_hash, hex(place)),
            ("debug_getRawTransaction", transaction),
        ]
        names = _TRANSACTION_TRACES
        calls += [
            ("debug_traceTransaction", transaction, CHEAP[name]) for name in names
        ]
    return calls + [
        ("debug_traceBlockByHash", block_hash, options) for options in CHEAP.values()
    ]
