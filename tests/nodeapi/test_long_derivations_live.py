"""A transaction with a call tree of some megabytes, for every native tracer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains, commands
from tests.support.live import Api, Live, live_service

ALICE = Signer("alice")
INPUT_BYTES = 32 * 1024
IDENTITY = "0x" + "00" * 19 + "04"

CODE = bytes.fromhex(
    "5b5f5f61" + f"{INPUT_BYTES:04x}" + "5f60045afa50"  # JUMPDEST; STATICCALL identity
    "5a62030d4010" + "5f57" + "00"  # GAS, PUSH3 200000, LT: JUMPI back
)
"""Calls the identity contract with 32 KiB until the gas is used up."""


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    genesis = fork_genesis("shanghai", ALICE)
    chain = ChainBuilder(genesis)
    chain.send(ALICE, Signer("bob").address, value=1)
    chain.deploy(ALICE, CODE, gas=450_000)
    chain.send(ALICE, Signer("bob").address, value=2)
    chain.block()
    chains.import_blocks("net", genesis, chain.blocks)
    with live_service() as live:
        yield live


@pytest.fixture(scope="module")
def api(live: Live) -> Iterator[Api]:
    with live.api("net", live.new_key(may_trace=True)) as api:
        yield api


def trace(api: Api, tracer: str, **config: Any) -> list[Any]:
    """Return a tracer's result for the block. Compare it with the single transactions'."""
    options = {"tracer": tracer, "tracerConfig": config}
    entries = api.result("debug_traceBlockByNumber", "0x1", options)
    assert len(entries) == 3
    for entry in entries:
        alone = api.result("debug_traceTransaction", entry["txHash"], options)
        assert alone == entry["result"]
    slices = [
        api.result("debug_traceBlockByNumber", "0x1", {**options, **limits})
        for limits in ({"toTx": 0}, {"fromTx": 1, "toTx": 1}, {"fromTx": 2})
    ]
    assert [entry for part in slices for entry in part] == entries
    return [entry["result"] for entry in entries]


@pytest.fixture(scope="module")
def calls(api: Api) -> list[Any]:
    """Return the results with default options, which are stored."""
    results = trace(api, "callTracer")
    assert sum(len(call["input"]) for call in results[1]["calls"]) > 2**20
    return results


def test_calls_with_logs_are_the_calls_where_there_are_no_logs(
    api: Api, calls: list[Any]
) -> None:
    assert trace(api, "callTracer", withLog=True) == calls


def test_top_calls_are_the_calls_without_others(api: Api, calls: list[Any]) -> None:
    tops = [
        {name: member for name, member in call.items() if name != "calls"}
        for call in calls
    ]
    assert trace(api, "callTracer", onlyTopCall=True) == tops


def test_flat_calls_are_all_calls(api: Api, calls: list[Any]) -> None:
    before, flat, behind = trace(api, "flatCallTracer", includePrecompiles=True)
    assert len(before) == len(behind) == 1
    assert len(flat) == 1 + len(calls[1]["calls"])
    for found, call in zip(flat[1:], calls[1]["calls"], strict=True):
        assert found["action"]["to"] == call["to"] == IDENTITY
        assert found["action"]["input"] == call["input"]
        assert found["result"]["output"] == call["output"]
        assert found["result"]["gasUsed"] == call["gasUsed"]
    parity = api.result("trace_block", "0x1")
    assert len(parity) == 3  # precompiled contracts are left out
    assert [entry["transactionPosition"] for entry in parity] == [0, 1, 2]


def test_selectors_of_precompiled_contracts_are_not_counted(api: Api) -> None:
    assert trace(api, "4byteTracer") == [{}, {}, {}]


def test_mux_holds_the_same(api: Api, calls: list[Any]) -> None:
    assert trace(api, "muxTracer", callTracer={}, noopTracer={}) == [
        {"callTracer": call, "noopTracer": {}} for call in calls
    ]


def test_state_before_and_after_is_as_ever(api: Api) -> None:
    changes = trace(api, "prestateTracer", diffMode=True)
    bob = "0x" + Signer("bob").address.hex()
    assert changes[0]["post"][bob]["balance"] == "0x1"
    assert changes[2]["post"][bob]["balance"] == "0x3"


def test_worker_does_what_takes_long(api: Api, live: Live) -> None:
    trace(api, "callTracer", withLog=True)
    assert commands.descendants("tracing.worker")


def test_other_requests_are_answered_at_the_same_time(api: Api, live: Live) -> None:
    def derive() -> None:
        for _ in range(5):
            trace(api, "callTracer", withLog=True)

    deriving = threading.Thread(target=derive)
    deriving.start()
    answers = 0
    with live.api("net") as other:
        while deriving.is_alive():
            assert other.result("eth_blockNumber") == "0x1"
            answers += 1
            deriving.join(0.02)  # without a pause, it would slow both down
    assert answers > 5  # others would have to wait for each derivation


def test_what_is_not_there_is_reported_alike(api: Api) -> None:
    options = {"tracer": "flatCallTracer"}
    unknown = "0x" + "12" * 32
    told = (-32000, f"block {unknown} not found")
    assert api.error("debug_traceBlockByHash", unknown, options) == told
