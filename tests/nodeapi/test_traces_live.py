"""Every method that returns traces of the sample chain, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evm.blocks import Block, decode_block
from evm.hexadecimal import to_hex
from evm.rewards import mining_rewards
from tests.support import sample
from tests.support.live import Api, request

RAW_BLOCKS = sample.raw_blocks()
BLOCKS = [decode_block(raw) for raw in RAW_BLOCKS]
BUSIEST = max(BLOCKS, key=lambda block: len(block.transactions))
SOME = [*BLOCKS[::4], BUSIEST]
"""Some blocks under each fork. tests/golden compares the traces of all blocks with geth's."""

UNKNOWN = "0x" + "12" * 32

NATIVE: list[dict[str, Any]] = [
    {"tracer": "callTracer"},
    {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": True}},
    {"tracer": "callTracer", "tracerConfig": {"withLog": True}},
    {"tracer": "callTracer", "tracerConfig": {"withLog": True, "onlyTopCall": True}},
    {"tracer": "flatCallTracer"},
    {"tracer": "flatCallTracer", "tracerConfig": {"convertParityErrors": True}},
    {"tracer": "flatCallTracer", "tracerConfig": {"includePrecompiles": True}},
    {"tracer": "prestateTracer"},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {"tracer": "prestateTracer", "tracerConfig": {"includeEmpty": True}},
    {
        "tracer": "prestateTracer",
        "tracerConfig": {"disableCode": True, "disableStorage": True},
    },
    {"tracer": "4byteTracer"},
    {"tracer": "noopTracer"},
    {
        "tracer": "muxTracer",
        "tracerConfig": {"callTracer": {"withLog": True}, "prestateTracer": None},
    },
]
COUNTING = """{
    count: 0,
    step: function() { this.count += 1 },
    fault: function() {},
    result: function() { return this.count }
}"""
EXECUTED: list[dict[str, Any]] = [
    {},
    {"tracer": COUNTING},
    {"tracer": "keccak256PreimageTracer"},
    {"tracer": "erc7562Tracer", "tracerConfig": {"withLog": True}},
    {
        "tracer": "muxTracer",
        "tracerConfig": {
            "callTracer": {"withLog": True},
            "erc7562Tracer": None,
            "muxTracer": {"opcountTracer": {}, "prestateTracer": {}},
        },
    },
]
TRACERS = NATIVE + EXECUTED


def name_of(options: dict[str, Any]) -> str:
    if options.get("tracer") == COUNTING:
        return "program"
    return "-".join([options.get("tracer", "none"), *options.get("tracerConfig", ())])


@pytest.fixture(scope="module")
def traced(api: Api) -> Callable[[dict[str, Any]], list[Any]]:
    """Return a function that traces the busiest block, once with each tracer."""
    found: dict[str, list[Any]] = {}

    def trace(options: dict[str, Any]) -> list[Any]:
        name = json.dumps(options)
        if name not in found:
            found[name] = api.result(
                "debug_traceBlockByHash", hash_of(BUSIEST), options
            )
        return found[name]

    return trace


def hash_of(block: Block) -> str:
    return to_hex(block.header.hash)


@pytest.mark.parametrize("options", NATIVE, ids=name_of)
def test_block_has_an_entry_for_each_transaction_by_every_door(
    api: Api, options: dict[str, Any]
) -> None:
    by_hash = api.results(
        ("debug_traceBlockByHash", hash_of(block), options) for block in SOME
    )
    by_number = api.results(
        ("debug_traceBlockByNumber", hex(block.header.number), options)
        for block in SOME
    )
    assert by_hash == by_number
    for block, entries in zip(SOME, by_hash, strict=True):
        assert [set(entry) for entry in entries] == [{"txHash", "result"}] * len(
            block.transactions
        )
        hashes = [to_hex(each.hash) for each in block.transactions]
        assert [entry["txHash"] for entry in entries] == hashes
    entries = [entry for entries in by_hash for entry in entries]
    alone = api.results(
        ("debug_traceTransaction", entry["txHash"], options) for entry in entries
    )
    assert alone == [entry["result"] for entry in entries]


@pytest.mark.parametrize("options", EXECUTED, ids=name_of)
def test_executed_trace_is_the_same_by_every_door(
    api: Api, traced: Callable[..., list[Any]], options: dict[str, Any]
) -> None:
    entries = traced(options)
    number = hex(BUSIEST.header.number)
    assert api.result("debug_traceBlockByNumber", number, options) == entries
    hashes = [to_hex(each.hash) for each in BUSIEST.transactions]
    assert [entry["txHash"] for entry in entries] == hashes
    few = entries[:5]
    alone = api.results(
        ("debug_traceTransaction", entry["txHash"], options) for entry in few
    )
    assert alone == [entry["result"] for entry in few]


@pytest.mark.parametrize("options", TRACERS, ids=name_of)
def test_slices_of_a_block_are_parts_of_the_whole(
    api: Api, traced: Callable[..., list[Any]], options: dict[str, Any]
) -> None:
    whole = traced(options)
    count = len(whole)
    assert count > 2
    middle = count // 2

    def part(**limits: Any) -> Any:
        return api.result(
            "debug_traceBlockByHash", hash_of(BUSIEST), {**options, **limits}
        )

    assert part(toTx=hex(middle - 1)) + part(fromTx=middle) == whole
    assert part(fromTx=1, toTx="0x1") == whole[1:2]
    assert part(fromTx=count) == []


def test_flat_traces_of_a_block_are_one_list_with_its_rewards(api: Api) -> None:
    options = {
        "tracer": "flatCallTracer",
        "tracerConfig": {"convertParityErrors": True},
    }
    config = sample.genesis()["config"]
    authors = set()
    for block in BLOCKS:
        entries = api.result("debug_traceBlockByHash", hash_of(block), options)
        flat = [trace for entry in entries for trace in entry["result"]]
        found = api.result("trace_block", hex(block.header.number))
        assert found[: len(flat)] == flat
        rewards = [trace["action"] for trace in found[len(flat) :]]
        paid = mining_rewards(block.header, block.uncles, config)
        assert rewards == [
            {
                "author": to_hex(reward.author),
                "rewardType": "uncle" if reward.is_uncle else "block",
                "value": hex(reward.value),
            }
            for reward in paid
        ]
        authors |= {reward["rewardType"] for reward in rewards}
        assert api.result("trace_block", {"blockHash": hash_of(block)}) == found
        for entry in entries:
            assert api.result("trace_transaction", entry["txHash"]) == entry["result"]
    assert authors == {"block", "uncle"}
    assert api.result("trace_block", "0x0") == []
    assert api.result("trace_block", hex(len(BLOCKS) + 1)) is None
    assert api.result("trace_block", UNKNOWN) is None
    assert api.result("trace_transaction", UNKNOWN) is None


def test_mux_has_the_answer_of_each_of_its_tracers(
    traced: Callable[..., list[Any]],
) -> None:
    def traces(tracer: str, config: Any) -> list[Any]:
        options = {"tracer": tracer, "tracerConfig": config}
        return [entry["result"] for entry in traced(options)]

    members: dict[str, Any] = {
        "callTracer": {"withLog": True},
        "erc7562Tracer": {},
        "opcountTracer": {},
        "prestateTracer": {"diffMode": True},
    }
    alone = {name: traces(name, config) for name, config in members.items()}
    expected = [
        dict(zip(alone, answers, strict=True))
        for answers in zip(*alone.values(), strict=True)
    ]
    assert traces("muxTracer", members) == expected
    nested = [{"muxTracer": answer} for answer in expected]
    assert traces("muxTracer", {"muxTracer": members}) == nested


@pytest.mark.parametrize("options", TRACERS, ids=name_of)
def test_what_is_not_there_can_not_be_traced(api: Api, options: dict[str, Any]) -> None:
    genesis = api.result("eth_getBlockByNumber", "0x0", False)["hash"]
    not_traceable = (-32000, "genesis is not traceable")
    assert api.error("debug_traceBlockByHash", genesis, options) == not_traceable
    assert api.error("debug_traceBlockByNumber", "0x0", options) == not_traceable
    assert api.error("debug_traceBlockByNumber", "earliest", options) == not_traceable
    told = (-32000, f"block {UNKNOWN} not found")
    assert api.error("debug_traceBlockByHash", UNKNOWN, options) == told
    above = len(BLOCKS) + 1
    told = (-32000, f"block #{above} not found")
    assert api.error("debug_traceBlockByNumber", hex(above), options) == told
    told = (-32000, "transaction not found")
    assert api.error("debug_traceTransaction", UNKNOWN, options) == told


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ([], (-32602, "missing value for required argument 0")),
        (
            [UNKNOWN, "callTracer"],
            (
                -32602,
                "invalid argument 1: json: cannot unmarshal string into Go value of "
                "type tracers.TraceConfig",
            ),
        ),
        (
            [UNKNOWN, {"fromTx": 2, "toTx": 1}],
            (-32602, "invalid argument 1: fromTx 2 is greater than toTx 1"),
        ),
        (
            [UNKNOWN, {"timeout": "soon"}],
            (-32000, 'time: invalid duration "soon"'),
        ),
        (
            [UNKNOWN, {"tracer": "callTracer", "tracerConfig": 5}],
            (
                -32000,
                "json: cannot unmarshal number into Go value of type "
                "native.callTracerConfig",
            ),
        ),
        ([UNKNOWN, {}, 5], (-32602, "too many arguments, want at most 2")),
    ],
)
def test_wrong_options_are_reported(
    api: Api, params: list[Any], told: tuple[int, str]
) -> None:
    assert api.error("debug_traceBlockByHash", *params) == told


def test_batch_has_traces_of_every_kind_in_its_order(
    api: Api, traced: Callable[..., list[Any]]
) -> None:
    calls = [("debug_traceBlockByHash", hash_of(BUSIEST), each) for each in TRACERS]
    calls.insert(3, ("eth_chainId",))
    calls.append(("debug_traceBlockByHash", UNKNOWN, {}))
    messages = [{**request(*call), "id": n} for n, call in enumerate(calls)]
    answers = api.send(messages).json()
    assert [answer["id"] for answer in answers] == list(range(len(calls)))
    assert answers.pop()["error"]["message"] == f"block {UNKNOWN} not found"
    assert answers.pop(3)["result"] == api.result("eth_chainId")
    for options, answer in zip(TRACERS, answers, strict=True):
        assert answer.get("result") == traced(options), options
