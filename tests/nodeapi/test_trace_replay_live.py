"""Parity's replays of the sample chain, over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from evm.blocks import decode_block
from tests.support import sample
from tests.support.live import Api

RAW_BLOCKS = sample.raw_blocks()
BLOCKS = [decode_block(raw) for raw in RAW_BLOCKS]
BUSIEST = max(BLOCKS, key=lambda block: len(block.transactions))
UNKNOWN = "0x" + "12" * 32
ALL = ["trace", "stateDiff", "vmTrace"]
RECORDED = ["trace", "stateDiff"]
PLACE = ("blockHash", "blockNumber", "transactionHash", "transactionPosition")
DIFF = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}


def test_replays_of_blocks_have_what_other_tracers_report(api: Api) -> None:
    compared = 0
    for block in BLOCKS:
        number = hex(block.header.number)
        results = api.result("trace_replayBlockTransactions", number, RECORDED)
        by_hash = {"blockHash": "0x" + block.header.hash.hex()}
        assert results == api.result("trace_replayBlockTransactions", by_hash, RECORDED)
        hashes = ["0x" + each.hash.hex() for each in block.transactions]
        assert [result["transactionHash"] for result in results] == hashes
        entries = api.result("trace_block", number)
        calls = api.result("debug_traceBlockByNumber", number, {"tracer": "callTracer"})
        diffs = api.result("debug_traceBlockByNumber", number, DIFF)
        for result, call, diff in zip(results, calls, diffs, strict=True):
            transaction_hash = result["transactionHash"]
            assert result["trace"] == [
                {name: entry[name] for name in entry if name not in PLACE}
                for entry in entries
                if entry["transactionHash"] == transaction_hash
            ]
            assert result["vmTrace"] is None
            error = call["result"].get("error")
            output = call["result"].get("output", "0x")
            shown = error in (None, "execution reverted")
            assert result["output"] == (output if shown else "0x")
            found, post = result["stateDiff"], diff["result"]["post"]
            # diff mode also reports self-destructions that were undone.
            assert post.keys() <= found.keys()
            for account, members in post.items():
                for slot, value in members.get("storage", {}).items():
                    (change,) = found[account]["storage"][slot].values()
                    after = change["to"] if isinstance(change, dict) else change
                    assert after == value
                if "balance" in members:
                    (change,) = found[account]["balance"].values()
                    after = change["to"] if isinstance(change, dict) else change
                    assert after == members["balance"]
                    compared += 1
    assert compared > 50


def test_a_transaction_alone_has_the_result_that_it_has_in_its_block(
    api: Api,
) -> None:
    for types in (RECORDED, ["trace"], ["stateDiff"], [], ALL, ["vmTrace"]):
        number = hex(BUSIEST.header.number)
        results = api.result("trace_replayBlockTransactions", number, types)
        for result in results[:4]:
            transaction_hash = result.pop("transactionHash")
            alone = api.result("trace_replayTransaction", transaction_hash, types)
            assert alone == result
            assert (alone["trace"] != []) is ("trace" in types)
            assert (alone["stateDiff"] is not None) is ("stateDiff" in types)
            assert (alone["vmTrace"] is not None) is ("vmTrace" in types)


def test_vm_trace_does_not_change_the_other_members(api: Api) -> None:
    number = hex(BUSIEST.header.number)
    with_vm = api.result("trace_replayBlockTransactions", number, ALL)
    without = api.result("trace_replayBlockTransactions", number, RECORDED)
    assert [{**result, "vmTrace": None} for result in with_vm] == without
    assert any(result["vmTrace"]["ops"] for result in with_vm)
    logs = api.result("debug_traceBlockByNumber", number, {})
    for result, entry in zip(with_vm, logs, strict=True):
        operations = result["vmTrace"]["ops"]
        outermost = [
            log["pc"] for log in entry["result"]["structLogs"] if log["depth"] == 1
        ]
        assert [operation["pc"] for operation in operations] == outermost


@pytest.mark.parametrize("types", [RECORDED, ALL])
def test_what_is_not_there_is_null(api: Api, types: list[str]) -> None:
    method = "trace_replayBlockTransactions"
    assert api.result("trace_replayTransaction", UNKNOWN, types) is None
    assert api.result(method, UNKNOWN, types) is None
    assert api.result(method, hex(len(BLOCKS) + 1), types) is None
    assert api.result(method, "0x0", types) == []


@pytest.mark.parametrize(
    ("types", "told"),
    [
        (["trace", "calls"], (-32000, "unrecognized trace type: calls")),
        ([None], (-32000, "unrecognized trace type: ")),
        (
            "trace",
            (
                -32602,
                "invalid argument 1: json: cannot unmarshal string into Go value of "
                "type []string",
            ),
        ),
        (
            [5],
            (
                -32602,
                "invalid argument 1: json: cannot unmarshal number into Go value of "
                "type string",
            ),
        ),
    ],
)
def test_wrong_types_are_reported(api: Api, types: Any, told: tuple[int, str]) -> None:
    assert api.error("trace_replayTransaction", UNKNOWN, types) == told
    assert api.error("trace_replayBlockTransactions", "latest", types) == told
