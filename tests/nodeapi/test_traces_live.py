"""Every method that returns traces of the sample chain, over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from eth_hash.auto import keccak

from evm.blocks import Block, decode_block, encode_block
from evm.rewards import mining_rewards
from tests.support import sample
from tests.support.live import Api, request

RAW_BLOCKS = sample.raw_blocks()
BLOCKS = [decode_block(raw) for raw in RAW_BLOCKS]
BUSIEST = max(BLOCKS, key=lambda block: len(block.transactions))
SOME = [*BLOCKS[::4], BUSIEST]
"""Blocks under each fork: tests/golden compares every block's traces with geth's."""

UNKNOWN = "0x" + "12" * 32
NO_CODE = {"code": "0x", "codeHash": "0x" + keccak(b"").hex()}
"""What became of a delegation that was withdrawn, as it is shown but once."""

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


def hexadecimal(value: bytes) -> str:
    return "0x" + value.hex()


def hash_of(block: Block) -> str:
    return hexadecimal(block.header.hash)


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
        hashes = [hexadecimal(each.hash) for each in block.transactions]
        assert [entry["txHash"] for entry in entries] == hashes
    entries = [entry for entries in by_hash for entry in entries]
    alone = api.results(
        ("debug_traceTransaction", entry["txHash"], options) for entry in entries
    )
    assert alone == [entry["result"] for entry in entries]


@pytest.mark.parametrize("options", EXECUTED, ids=name_of)
def test_executed_trace_is_the_same_by_every_door(
    api: Api, options: dict[str, Any]
) -> None:
    entries = api.result("debug_traceBlockByHash", hash_of(BUSIEST), options)
    number = hex(BUSIEST.header.number)
    assert api.result("debug_traceBlockByNumber", number, options) == entries
    hashes = [hexadecimal(each.hash) for each in BUSIEST.transactions]
    assert [entry["txHash"] for entry in entries] == hashes
    few = entries[:5]
    alone = api.results(
        ("debug_traceTransaction", entry["txHash"], options) for entry in few
    )
    assert alone == [entry["result"] for entry in few]


@pytest.mark.parametrize("options", TRACERS, ids=name_of)
def test_slices_of_a_block_are_parts_of_the_whole(
    api: Api, options: dict[str, Any]
) -> None:
    whole = api.result("debug_traceBlockByHash", hash_of(BUSIEST), options)
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


def test_calls_carry_what_receipts_say(api: Api) -> None:
    for block in BLOCKS:
        traces = api.result(
            "debug_traceBlockByHash", hash_of(block), {"tracer": "callTracer"}
        )
        receipts = api.result("eth_getBlockReceipts", hash_of(block))
        for trace, receipt in zip(traces, receipts, strict=True):
            call = trace["result"]
            assert call["gasUsed"] == receipt["gasUsed"]
            assert call["from"] == receipt["from"]
            if "status" in receipt:
                assert ("error" in call) is (receipt["status"] == "0x0")


def test_post_state_of_a_transaction_is_where_the_next_one_begins(api: Api) -> None:
    plain = {"tracer": "prestateTracer"}
    diff = {**plain, "tracerConfig": {"diffMode": True}}
    compared = 0
    for block in BLOCKS:
        before = api.result("debug_traceBlockByHash", hash_of(block), plain)
        changes = api.result("debug_traceBlockByHash", hash_of(block), diff)
        state: dict[str, dict[str, Any]] = {}
        for entry, change in zip(before, changes, strict=True):
            for account, found in entry["result"].items():
                known = state.get(account, {})
                for member in ("balance", "code", "codeHash", "nonce"):
                    if member in known:
                        now = found.get(member, NO_CODE.get(member))
                        assert now == known[member], (account, member)
                        compared += 1
            for account, found in change["result"]["post"].items():
                state.setdefault(account, {}).update(found)
            for account in change["result"]["pre"].keys() - change["result"]["post"]:
                state.pop(account, None)
    assert compared > 50


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
                "author": hexadecimal(reward.author),
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


def test_blocks_and_transactions_are_given_as_they_travel(api: Api) -> None:
    for raw, block in zip(RAW_BLOCKS, BLOCKS, strict=True):
        number = hex(block.header.number)
        assert api.result("debug_getRawBlock", number) == hexadecimal(raw)
        header = bytes.fromhex(api.result("debug_getRawHeader", hash_of(block))[2:])
        assert keccak(header) == block.header.hash
    for transaction in BUSIEST.transactions:
        found = api.result("debug_getRawTransaction", hexadecimal(transaction.hash))
        assert keccak(bytes.fromhex(found[2:])) == transaction.hash
    assert api.result("debug_getRawBlock", "latest") == hexadecimal(RAW_BLOCKS[-1])
    assert api.result("debug_getRawBlock", hex(len(BLOCKS) + 1)) == "0x"
    assert api.result("debug_getRawTransaction", UNKNOWN) == "0x"


def test_mux_has_the_answer_of_each_of_its_tracers(api: Api) -> None:
    def traces(tracer: str, config: Any) -> list[Any]:
        options = {"tracer": tracer, "tracerConfig": config}
        entries = api.result("debug_traceBlockByHash", hash_of(BUSIEST), options)
        return [entry["result"] for entry in entries]

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


@pytest.mark.parametrize("kind", ["block", "header"])
def test_raw_block_or_header_of_an_unknown_hash_is_geths_error(
    api: Api, kind: str
) -> None:
    # geth 1.17.2 prints the hash with %d.
    numbers = " ".join(["18"] * 32)
    error = (-32000, f"{kind} #[{numbers}] not found")
    method = f"debug_getRaw{kind.title()}"
    assert api.error(method, UNKNOWN) == error
    assert api.error(method, {"blockHash": UNKNOWN}) == error
    canonical = {"blockHash": UNKNOWN, "requireCanonical": True}
    assert api.error(method, canonical) == error


def test_uncles_are_block_objects_without_transactions(api: Api) -> None:
    nephew = next(block for block in BLOCKS if block.uncles)
    number = hex(nephew.header.number)
    named = api.result("eth_getBlockByNumber", number, False)
    for position, uncle in enumerate(nephew.uncles):
        found = api.result("eth_getUncleByBlockNumberAndIndex", number, hex(position))
        by_hash = api.result(
            "eth_getUncleByBlockHashAndIndex", hash_of(nephew), hex(position)
        )
        assert by_hash == found
        assert found["hash"] == named["uncles"][position]
        # The members are those of a block before Shanghai, without these two.
        assert found.keys() == named.keys() - {"totalDifficulty", "transactions"}
        assert found["uncles"] == []
        assert found["number"] == hex(uncle.number)
        assert found["miner"] == hexadecimal(uncle.coinbase)
        assert found["size"] == hex(len(encode_block(Block(uncle))))
    beyond = hex(len(nephew.uncles))
    for method, block in (
        ("eth_getUncleByBlockNumberAndIndex", number),
        ("eth_getUncleByBlockNumberAndIndex", "latest"),
        ("eth_getUncleByBlockNumberAndIndex", hex(len(BLOCKS) + 1)),
        ("eth_getUncleByBlockHashAndIndex", hash_of(nephew)),
        ("eth_getUncleByBlockHashAndIndex", UNKNOWN),
    ):
        assert api.result(method, block, beyond) is None
        assert api.result(method, block, hex(2**64 - 1)) is None


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


def test_batch_has_traces_of_every_kind_in_its_order(api: Api) -> None:
    calls = [("debug_traceBlockByHash", hash_of(BUSIEST), each) for each in TRACERS]
    calls.insert(3, ("eth_chainId",))
    calls.append(("debug_traceBlockByHash", UNKNOWN, {}))
    messages = [{**request(*call), "id": n} for n, call in enumerate(calls)]
    answers = api.send(messages).json()
    assert [answer["id"] for answer in answers] == list(range(len(calls)))
    assert answers.pop()["error"]["message"] == f"block {UNKNOWN} not found"
    for call, answer in zip(calls, answers, strict=False):
        assert answer.get("result") == api.result(*call), call
