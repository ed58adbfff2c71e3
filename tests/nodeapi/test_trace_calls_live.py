"""Traces of calls and of blocks that are given as RLP, over real HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from eth_utils import to_checksum_address

from evm.blocks import Block, encode_block
from keys.services import set_allowlist
from tests.nodeapi.test_traces_live import (
    BLOCKS,
    BUSIEST,
    RAW_BLOCKS,
    SOME,
    TRACERS,
    UNKNOWN,
    hash_of,
    name_of,
)
from tests.support.live import Api, Live, api_key_of, request

CONTRACT, CALLER = "0x" + "c0" * 20, "0x" + "ca" * 20
ALL = ["trace", "stateDiff", "vmTrace"]
CALL_TRACER = {"tracer": "callTracer"}
_COPIED = (
    *("from", "to", "gas", "value", "nonce", "input", "accessList"),
    *("maxFeePerBlobGas", "blobVersionedHashes", "authorizationList"),
)
PLACE = ("blockHash", "blockNumber", "transactionHash", "transactionPosition")


def call_of(transaction: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that equals a transaction object."""
    call = {name: transaction[name] for name in _COPIED if name in transaction}
    if "maxFeePerGas" in transaction:
        names = ("maxFeePerGas", "maxPriorityFeePerGas")
        return call | {name: transaction[name] for name in names}
    return call | {"gasPrice": transaction["gasPrice"]}


def without_place(result: Any) -> Any:
    """Return a tracer's result without the position of the transaction."""
    if isinstance(result, dict):
        return {name: without_place(each) for name, each in result.items()}
    if not isinstance(result, list):
        return result
    return [
        {name: entry[name] for name in entry if name not in PLACE}
        if isinstance(entry, dict)
        else entry
        for entry in result
    ]


@pytest.mark.parametrize("options", TRACERS, ids=name_of)
def test_a_call_before_a_transaction_has_the_transactions_trace(
    api: Api, options: dict[str, Any]
) -> None:
    compared = 0
    # tests/golden compares calls with geth's under each fork.
    for block in SOME if options == CALL_TRACER else [BUSIEST]:
        number = hex(block.header.number)
        entries = api.result("debug_traceBlockByNumber", number, options)
        transactions = api.result("eth_getBlockByNumber", number, True)["transactions"]
        for index, (entry, transaction) in enumerate(
            zip(entries, transactions, strict=True)
        ):
            at_index = {**options, "txIndex": hex(index)}
            call = call_of(transaction)
            found = api.result("debug_traceCall", call, number, at_index)
            assert without_place(found) == without_place(entry["result"]), call
            compared += 1
            if index == 8:
                break
    assert compared > 5


def test_without_an_index_the_call_follows_the_block(api: Api) -> None:
    # Returns the block's number and stores it: SLOAD(0), SSTORE(0, NUMBER), RETURN.
    code = "0x5f5443805f555f5260205260405ff3"
    overrides = {CONTRACT: {"code": code, "stateDiff": {word(0): word(7)}}}
    call = {"from": CALLER, "to": CONTRACT}
    head = api.result("eth_blockNumber")
    options = {**CALL_TRACER, "stateOverrides": overrides}
    by_tag = api.result("debug_traceCall", call, "latest", options)
    assert by_tag["output"] == word(int(head, 16)) + word(7)[2:]
    assert by_tag["from"] == CALLER
    assert by_tag["gas"] == hex(50_000_000)
    block_hash = "0x" + BLOCKS[-1].header.hash.hex()
    for block in (head, block_hash, {"blockHash": block_hash}):
        assert api.result("debug_traceCall", call, block, options) == by_tag
    moved = {**options, "BlockOverrides": {"number": "0x1234"}}
    output = api.result("debug_traceCall", call, "latest", moved)["output"]
    assert output.startswith(word(0x1234))


def word(value: int) -> str:
    return f"0x{value:064x}"


def test_a_call_in_the_next_block_sees_the_hash_of_its_block(api: Api) -> None:
    # BLOCKHASH(call data) as return data.
    overrides = {CONTRACT: {"code": "0x5f35405f5260205ff3"}}
    last, before = BLOCKS[-1].header, BLOCKS[-2].header

    def hash_of(number: int, at: int | None) -> str:
        call = {"to": CONTRACT, "input": word(number)}
        options: dict[str, Any] = {**CALL_TRACER, "stateOverrides": overrides}
        if at is not None:
            options["blockOverrides"] = {"number": hex(at)}
        found = api.result("debug_traceCall", call, "latest", options)
        output: str = found["output"]
        return output

    assert hash_of(last.number, None) == word(0)
    assert hash_of(last.number - 1, None) == "0x" + before.hash.hex()
    assert hash_of(last.number, last.number + 1) == "0x" + last.hash.hex()
    assert hash_of(before.number, last.number + 1) == "0x" + before.hash.hex()
    assert hash_of(last.number, last.number + 2) == word(0)


def test_a_block_before_london_is_not_merged_by_an_override(api: Api) -> None:
    options = {**CALL_TRACER, "blockOverrides": {"prevRandao": word(1)}}
    found = api.result("debug_traceCall", {"to": CONTRACT}, "0x1", options)
    assert "error" not in found


def test_delegates_are_looked_up_only_under_forks_that_have_them(api: Api) -> None:
    delegate = "0x" + "de" * 20
    state = {CONTRACT: {"code": "0xef0100" + delegate[2:]}}
    signed = {"chainId": "0x0", "address": CALLER, "nonce": "0x0", "yParity": "0x0"}
    signed |= {"r": "0x1", "s": "0x1"}
    call = {"from": CALLER, "to": CONTRACT, "authorizationList": [signed]}
    options = {
        "tracer": "prestateTracer",
        "tracerConfig": {"includeEmpty": True},
        "stateOverrides": state,
    }
    assert delegate in api.result("debug_traceCall", call, "latest", options)
    del call["authorizationList"]
    assert delegate not in api.result("debug_traceCall", call, "0x1", options)


def test_a_long_result_is_sent_whole(api: Api) -> None:
    # Counts 20,000 down: PUSH2, JUMPDEST, PUSH1 1, SWAP1, SUB, DUP1, PUSH1 3, JUMPI.
    overrides = {CONTRACT: {"code": "0x614e205b60019003806003570000"}}
    found = api.result(
        "debug_traceCall", {"to": CONTRACT}, "latest", {"stateOverrides": overrides}
    )
    assert len(found["structLogs"]) == 1 + 7 * 20_000 + 1
    traces = api.result("trace_call", {"to": CONTRACT}, ALL, "latest", overrides)
    assert len(traces["vmTrace"]["ops"]) == 1 + 7 * 20_000 + 1


@pytest.mark.parametrize("options", TRACERS, ids=name_of)
def test_a_block_as_rlp_has_the_traces_that_it_has_by_hash(
    api: Api, options: dict[str, Any]
) -> None:
    """tests/golden compares the traces of other blocks with geth's."""
    raw = RAW_BLOCKS[BUSIEST.header.number - 1]
    expected = api.result("debug_traceBlockByHash", hash_of(BUSIEST), options)
    assert api.result("debug_traceBlock", "0x" + raw.hex(), options) == expected


def test_a_block_that_is_not_stored_is_traced(api: Api) -> None:
    fewer = Block(
        BUSIEST.header,
        BUSIEST.transactions[:-1],
        BUSIEST.uncles,
        BUSIEST.withdrawals,
    )
    block_hash = "0x" + BUSIEST.header.hash.hex()
    expected = api.result("debug_traceBlockByHash", block_hash, CALL_TRACER)
    raw = "0x" + encode_block(fewer).hex()
    assert api.result("debug_traceBlock", raw, CALL_TRACER) == expected[:-1]
    part = {**CALL_TRACER, "fromTx": 1, "toTx": 1}
    assert api.result("debug_traceBlock", raw, part) == expected[1:2]


def test_parity_traces_of_a_call_are_those_of_geths_tracers(api: Api) -> None:
    transaction = api.result("eth_getBlockByNumber", hex(BUSIEST.header.number), True)[
        "transactions"
    ][0]
    call = {"from": transaction["from"], "to": transaction["to"]}
    call["input"] = transaction["input"]
    number = hex(BUSIEST.header.number - 1)
    found = api.result("trace_call", call, ALL, number)

    def traced(tracer: str, **config: Any) -> Any:
        options = {"tracer": tracer, "tracerConfig": config}
        return api.result("debug_traceCall", call, number, options)

    flat = traced("flatCallTracer", convertParityErrors=True)
    assert found["trace"] == without_place(flat)
    assert found["output"] == traced("callTracer").get("output", "0x")
    post = traced("prestateTracer", diffMode=True)["post"]
    assert found["stateDiff"].keys() == post.keys()
    logs = api.result("debug_traceCall", call, number)["structLogs"]
    assert [op["pc"] for op in found["vmTrace"]["ops"]] == [
        log["pc"] for log in logs if log["depth"] == 1
    ]
    for types in (["trace"], ["stateDiff"], ["vmTrace"], []):
        part = api.result("trace_call", call, types, number)
        for name, absent in (("trace", []), ("stateDiff", None), ("vmTrace", None)):
            assert part[name] == (found[name] if name in types else absent)


def test_each_of_many_calls_sees_what_those_before_have_changed(api: Api) -> None:
    # Init code whose contract adds 1 to slot 0 and returns it.
    code = "5f546001018060005560005260205ff3"
    init = f"0x6f{code}5f5260106010f3"
    deploy = {"from": CALLER, "data": init}
    created = api.result("trace_call", deploy, ["trace"])["trace"][0]["result"]
    call = {"from": CALLER, "to": created["address"]}
    results = api.result(
        "trace_callMany", [[deploy, ["stateDiff"]], [call, []], [call, ALL]]
    )
    assert [result["output"] for result in results] == [
        "0x" + code,
        word(1),
        word(2),
    ]
    diff = results[2]["stateDiff"][created["address"]]
    assert diff["storage"] == {word(0): {"*": {"from": word(1), "to": word(2)}}}
    assert results[0]["stateDiff"][created["address"]]["code"] == {"+": "0x" + code}
    assert results[2]["vmTrace"]["code"] == "0x" + code
    assert api.result("trace_callMany", []) == []


def test_a_signed_transaction_has_the_trace_of_its_call(api: Api) -> None:
    compared = 0
    for block in BLOCKS[-6:]:
        parent = hex(block.header.number - 1)
        transactions = api.result(
            "eth_getBlockByHash", "0x" + block.header.hash.hex(), True
        )["transactions"]
        for transaction in transactions[:3]:
            raw = api.result("debug_getRawTransaction", transaction["hash"])
            found = api.ask("trace_rawTransaction", raw, ALL, parent)
            call = call_of(transaction)
            expected = api.ask("trace_call", call, ALL, parent)
            assert found == expected
            compared += "result" in found
    assert compared


def test_a_signed_transaction_needs_an_allowed_recipient(live: Live) -> None:
    sent = [each for block in BLOCKS for each in block.transactions if each.to]
    first, second = sent[0], next(each for each in sent if each.to != sent[0].to)
    secret = live.new_key(may_trace=True)
    api_key = api_key_of(secret)
    set_allowlist(api_key=api_key, kind="contract", values=["0x" + first.to.hex()])
    with live.api(key=secret) as api:

        def reason(raw: bytes) -> str | None:
            message = request("trace_rawTransaction", "0x" + raw.hex(), ["trace"])
            answer = api.send(message).json()
            data = answer.get("error", {}).get("data") or {}
            found: str | None = data.get("reason")
            return found

        assert reason(second.raw) == "contract_not_allowed"
        assert reason(first.raw) is None
        told = (-32000, "typed transaction too short")
        assert api.error("trace_rawTransaction", "0x02", ["trace"]) == told


def test_overrides_of_a_parity_call(api: Api) -> None:
    call = {"from": CALLER, "to": CONTRACT, "value": "0x5"}
    overrides = {CALLER: {"balance": "0x9"}, CONTRACT: {"code": "0x435f5260205ff3"}}
    found = api.result(
        "trace_call", call, ["stateDiff"], "latest", overrides, {"number": "0x77"}
    )
    assert found["output"] == word(0x77)
    balance = {"*": {"from": "0x9", "to": "0x4"}}
    assert found["stateDiff"][CALLER]["balance"] == balance


LOOP = {CONTRACT: {"code": "0x5b5f56"}}
TO_CONTRACT = {"to": CONTRACT}


@pytest.mark.parametrize(
    ("method", "params", "told"),
    [
        (
            "debug_traceCall",
            [TO_CONTRACT, "pending"],
            (-32000, "tracing on top of pending is not supported"),
        ),
        (
            "debug_traceCall",
            [TO_CONTRACT, "0xfffff"],
            (-32000, "block #1048575 not found"),
        ),
        (
            "debug_traceCall",
            [TO_CONTRACT, UNKNOWN],
            (-32000, f"block {UNKNOWN} not found"),
        ),
        (
            "debug_traceCall",
            [TO_CONTRACT, "0x0", {"txIndex": "0x0"}],
            (-32000, "no transaction in genesis"),
        ),
        (
            "debug_traceCall",
            [TO_CONTRACT, "latest", "callTracer"],
            (
                -32602,
                "invalid argument 2: json: cannot unmarshal string into Go value of "
                "type tracers.TraceCallConfig",
            ),
        ),
        (
            "debug_traceCall",
            [{**TO_CONTRACT, "gas": "0x1"}, "latest"],
            (-32000, "tracing failed: intrinsic gas too low: have 1, want 15000"),
        ),
        (
            "debug_traceCall",
            [{**TO_CONTRACT, "gasPrice": "0x1", "maxFeePerGas": "0x1"}, "latest"],
            (
                -32000,
                "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
            ),
        ),
        (
            "debug_traceCall",
            [TO_CONTRACT, "latest", {"blockOverrides": {"beaconRoot": UNKNOWN}}],
            (
                -32000,
                'block override "beaconRoot" is not supported for this RPC method',
            ),
        ),
        (
            "debug_traceCall",
            [
                TO_CONTRACT,
                "latest",
                {"stateOverrides": {CONTRACT: {"movePrecompileToAddress": CALLER}}},
            ],
            (
                -32000,
                f"account {to_checksum_address(CONTRACT)} is not a precompile",
            ),
        ),
        (
            "debug_traceCall",
            [TO_CONTRACT, "latest", {"stateOverrides": LOOP, "timeout": "20ms"}],
            (-32000, "execution timeout"),
        ),
        (
            "debug_traceCall",
            [TO_CONTRACT, "latest", {"tracer": "{"}],
            None,
        ),
        ("debug_traceBlock", ["0x"], None),
        (
            "trace_call",
            [{**TO_CONTRACT, "gas": "0x1"}, ["trace"]],
            (-32000, "err: intrinsic gas too low: have 1, want 15000 (supplied gas 1)"),
        ),
        ("trace_call", [TO_CONTRACT, ["x"]], (-32000, "unrecognized trace type: x")),
        (
            "trace_callMany",
            [[[TO_CONTRACT, ["x"]]]],
            (-32000, "unrecognized trace type: x"),
        ),
        (
            "trace_callMany",
            [[TO_CONTRACT]],
            (
                -32602,
                "invalid argument 0: each item must be a list of a call and its trace types",
            ),
        ),
        (
            "trace_rawTransaction",
            ["0x02", ["trace"]],
            (-32000, "typed transaction too short"),
        ),
    ],
)
def test_failures_have_geths_texts(
    api: Api, method: str, params: list[Any], told: tuple[int, str] | None
) -> None:
    found = api.error(method, *params)
    if told is not None:
        assert found == told
    else:
        assert found[0] == -32000


def test_an_index_has_to_be_one_of_the_block(api: Api) -> None:
    block_hash = "0x" + BUSIEST.header.hash.hex()
    index = len(BUSIEST.transactions)
    told = f"transaction index {index} out of range for block {block_hash}"
    options = {"txIndex": hex(index)}
    assert api.error("debug_traceCall", TO_CONTRACT, block_hash, options) == (
        -32000,
        told,
    )


def test_a_block_without_a_stored_parent_is_not_traced(api: Api) -> None:
    raw = encode_block(Block(sample_header(parent_hash=b"\x12" * 32)))
    told = (-32000, f"block {UNKNOWN} not found")
    assert api.error("debug_traceBlock", "0x" + raw.hex(), CALL_TRACER) == told
    raw = encode_block(Block(sample_header(parent_hash=b"\x12" * 32, number=10**6)))
    told = (-32000, "block #999999 not found")
    assert api.error("debug_traceBlock", "0x" + raw.hex(), CALL_TRACER) == told
    raw = encode_block(Block(sample_header(number=0)))
    told = (-32000, "genesis is not traceable")
    assert api.error("debug_traceBlock", "0x" + raw.hex(), CALL_TRACER) == told


def sample_header(**changes: Any) -> Any:
    return replace(BUSIEST.header, **changes)
