"""A network that has started at a checkpoint: what is answered up to it, and what is not.

Blocks OLDEST to CHECKPOINT are proved, and stored with receipts and logs. Below OLDEST only
block 0 is stored. No block was executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from evm.blocks import decode_block
from networks.services import finish_preparing
from tests.support import chains, sample
from tests.support.live import Api, live_service
from tests.support.proved import start_at_checkpoint, trace_later

BLOCKS = [decode_block(raw) for raw in sample.raw_blocks()]
CHECKPOINT, OLDEST = 100, 62
TRACED = next(
    block for block in BLOCKS[CHECKPOINT - 3 :: -1] if len(block.transactions) > 1
)
EMPTY = next(block for block in BLOCKS[CHECKPOINT - 2 :: -1] if not block.transactions)
ADDRESS = "0x" + BLOCKS[CHECKPOINT - 1].header.coinbase.hex()


def hashed(number: int) -> str:
    return f"0x{BLOCKS[number - 1].header.hash.hex()}"


@pytest.fixture(scope="module")
def clients(module_db: None) -> Iterator[list[Api]]:
    """Serve the network, and one that has executed the same blocks."""
    raw = sample.raw_blocks()[:CHECKPOINT]
    chains.import_blocks("full", sample.genesis(), raw)
    network = start_at_checkpoint(
        "sparse", "full", sample.genesis(), CHECKPOINT, oldest=OLDEST
    )
    finish_preparing(network.pk)
    with live_service() as live:
        key = live.new_key(may_trace=True)
        with live.api("sparse", key) as sparse, live.api("full", key) as full:
            yield [sparse, full]


def pruned(api: Api, oldest: int, method: str, *params: Any) -> None:
    error = api.ask(method, *params)["error"]
    assert (error["code"], error["message"]) == (4444, "pruned history unavailable"), (
        method,
        params,
    )
    assert error["data"].pop("see").endswith("/docs/errors#history_pruned")
    assert error["data"] == {"reason": "history_pruned", "oldestBlock": hex(oldest)}


def test_proved_blocks_are_answered_like_executed_ones(clients: list[Api]) -> None:
    sparse, full = clients
    calls: list[tuple[Any, ...]] = [("eth_blockNumber",), ("eth_chainId",)]
    for number in range(OLDEST, CHECKPOINT + 1):
        for name in (hex(number), hashed(number)):
            calls += [
                ("eth_getBlockReceipts", name),
                ("debug_getRawBlock", name),
                ("debug_getRawReceipts", name),
            ]
        calls += [("eth_getLogs", {"blockHash": hashed(number)})]
        for index, transaction in enumerate(BLOCKS[number - 1].transactions):
            name = f"0x{transaction.hash.hex()}"
            calls += [
                ("eth_getTransactionByHash", name),
                ("eth_getTransactionReceipt", name),
                ("eth_getTransactionByBlockNumberAndIndex", hex(number), hex(index)),
            ]
    calls += [
        ("eth_getLogs", {"fromBlock": hex(OLDEST), "toBlock": "latest"}),
        ("eth_feeHistory", "0x5", "latest", [10, 90]),
        ("eth_gasPrice",),
    ]
    assert sparse.results(calls) == full.results(calls)
    names = [hex(OLDEST), hex(CHECKPOINT), "latest", "earliest", "0x0"]
    for name in names:
        found = sparse.result("eth_getBlockByNumber", name, True)
        wanted = full.result("eth_getBlockByNumber", name, True)
        assert wanted.pop("totalDifficulty")
        assert found == wanted
    for tag in ("safe", "finalized"):
        found = sparse.result("eth_getBlockByNumber", tag, False)
        assert found["number"] == hex(CHECKPOINT)


def test_blocks_below_the_oldest_one_are_pruned(clients: list[Api]) -> None:
    sparse, _ = clients
    for number in (1, OLDEST - 1):
        name = hex(number)
        for method, *rest in (
            ("eth_getBlockByNumber", True),
            ("eth_getBlockByNumber", False),
            ("eth_getBlockReceipts",),
            ("eth_getBlockTransactionCountByNumber",),
            ("eth_getTransactionByBlockNumberAndIndex", "0x0"),
            ("eth_getHeaderByNumber",),
            ("debug_getRawBlock",),
            ("debug_getRawHeader",),
            ("debug_traceBlockByNumber",),
            ("ots_getBlockDetails",),
            ("trace_block",),
        ):
            given = int(name, 16) if method.startswith("ots") else name
            pruned(sparse, OLDEST, method, given, *rest)
        assert sparse.result("eth_getBlockByHash", hashed(number), True) is None
        pruned(sparse, OLDEST, "eth_getLogs", {"fromBlock": name, "toBlock": "latest"})
        pruned(sparse, OLDEST, "eth_feeHistory", "0x2", name, [])
    for begin in ("earliest", "0x0"):
        wanted = {"fromBlock": begin, "toBlock": "latest"}
        pruned(sparse, OLDEST, "eth_getLogs", wanted)
        created = sparse.result("eth_newFilter", wanted)
        pruned(sparse, OLDEST, "eth_getFilterLogs", created)
    assert sparse.result("eth_getLogs", {"fromBlock": "0x0", "toBlock": "0x0"}) == []
    history = sparse.result("eth_feeHistory", "0x400", hex(OLDEST + 1), [])
    assert history["oldestBlock"] == hex(OLDEST)
    assert len(history["gasUsedRatio"]) == 2
    transaction = BLOCKS[30].transactions[0].hash.hex()
    assert sparse.result("eth_getTransactionByHash", f"0x{transaction}") is None


def test_state_below_the_checkpoint_is_pruned(clients: list[Api]) -> None:
    sparse, _ = clients
    call = {"from": ADDRESS, "to": ADDRESS}
    for name in (hex(CHECKPOINT - 1), {"blockHash": hashed(OLDEST)}, "0x0", "earliest"):
        for method, *rest in (
            ("eth_getBalance", ADDRESS),
            ("eth_getTransactionCount", ADDRESS),
            ("eth_getCode", ADDRESS),
            ("eth_getStorageAt", ADDRESS, "0x0"),
            ("eth_getProof", ADDRESS, []),
            ("eth_call", call),
            ("eth_estimateGas", call),
            ("eth_createAccessList", call),
            ("eth_simulateV1", {"blockStateCalls": [{"calls": [call]}]}),
            ("debug_traceCall", call),
            ("trace_call", call, ["trace"]),
        ):
            pruned(sparse, CHECKPOINT, method, *rest, name)


def test_traces_up_to_the_checkpoint_are_pruned(clients: list[Api]) -> None:
    sparse, _ = clients
    first = CHECKPOINT + 1
    transaction = f"0x{TRACED.transactions[0].hash.hex()}"
    tracers: list[dict[str, Any]] = [
        *({"tracer": name} for name in ("callTracer", "prestateTracer", "muxTracer")),
        {"tracer": "flatCallTracer"},
        {"tracer": "4byteTracer"},
        {},
        {"tracer": "{result: function() {}, fault: function() {}}"},
    ]
    for options in tracers:
        pruned(sparse, first, "debug_traceTransaction", transaction, options)
        for block in (TRACED, EMPTY):
            name = f"0x{block.header.hash.hex()}"
            pruned(sparse, first, "debug_traceBlockByHash", name, options)
            pruned(
                sparse,
                first,
                "debug_traceBlockByNumber",
                hex(block.header.number),
                options,
            )
    number = hex(TRACED.header.number)
    for method, *params in (
        ("trace_transaction", transaction),
        ("trace_get", transaction, ["0x0"]),
        ("trace_block", number),
        ("trace_replayTransaction", transaction, ["trace"]),
        ("trace_replayBlockTransactions", number, ["trace"]),
        ("trace_filter", {"fromBlock": number, "toBlock": "latest"}),
        ("ots_traceTransaction", transaction),
        ("ots_getInternalOperations", transaction),
        ("ots_getTransactionError", transaction),
        ("ots_searchTransactionsBefore", ADDRESS, 0, 5),
        ("ots_searchTransactionsAfter", ADDRESS, 0, 5),
        ("portcullis_getBlockAccessList", number),
        ("debug_executionWitness", number),
        ("debug_intermediateRoots", f"0x{TRACED.header.hash.hex()}"),
    ):
        pruned(sparse, first, method, *params)
    for options in tracers:
        assert sparse.error("debug_traceBlockByNumber", "0x0", options) == (
            -32000,
            "genesis is not traceable",
        )


def test_capabilities_name_the_oldest_blocks(clients: list[Api]) -> None:
    found = clients[0].result("eth_capabilities")
    assert {name: each.get("oldestBlock") for name, each in found.items()} == {
        "head": None,
        "state": hex(CHECKPOINT),
        "tx": hex(OLDEST),
        "logs": hex(OLDEST),
        "receipts": hex(OLDEST),
        "blocks": hex(OLDEST),
        "stateproofs": hex(CHECKPOINT),
    }


def test_documents_name_the_oldest_blocks(clients: list[Api]) -> None:
    sparse, full = clients
    found = sparse.result("rpc.discover")
    assert found.pop("x-history") == {
        "checkpoint": hex(CHECKPOINT),
        "oldestBlock": {
            "blocks": hex(OLDEST),
            "logs": hex(OLDEST),
            "state": hex(CHECKPOINT),
            "traces": hex(CHECKPOINT + 1),
        },
        "byProofs": {"state": hex(OLDEST), "traces": hex(OLDEST + 1)},
    }
    assert found == full.result("rpc.discover")
    page = Client().get("/docs/networks").content.decode()
    assert f"Started at block {CHECKPOINT}" in page
    assert f"logs from block {OLDEST} on" in page
    assert page.count("Started at block") == 1


def test_a_block_that_was_traced_later_is_answered_from_its_records(
    clients: list[Api],
) -> None:
    sparse, full = clients
    number = next(n for n in range(OLDEST, CHECKPOINT) if BLOCKS[n - 1].transactions)
    block = BLOCKS[number - 1]
    assert block is not TRACED
    transaction = f"0x{block.transactions[0].hash.hex()}"
    pruned(sparse, CHECKPOINT + 1, "trace_block", hex(number))
    trace_later("sparse", "full", block.header.hash)
    calls: list[tuple[Any, ...]] = [
        ("trace_block", hex(number)),
        ("trace_transaction", transaction),
        ("trace_replayBlockTransactions", hex(number), ["trace", "stateDiff"]),
        ("ots_getInternalOperations", transaction),
    ]
    for name in ("callTracer", "prestateTracer", "flatCallTracer", "4byteTracer"):
        options = {"tracer": name}
        calls += [
            ("debug_traceTransaction", transaction, options),
            ("debug_traceBlockByNumber", hex(number), options),
        ]
    assert sparse.results(calls) == full.results(calls)
    for method, name in (
        ("debug_traceTransaction", transaction),
        ("debug_traceBlockByNumber", hex(number)),
    ):
        pruned(sparse, CHECKPOINT + 1, method, name, {})
