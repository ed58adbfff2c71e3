"""Transactions and calls by the rules of other forks, on the sample chain."""

from __future__ import annotations

from typing import Any

import pytest

from evm.blocks import Block
from evm.chain_config import ChainConfig
from evm.hexadecimal import to_hex
from evm.rules.forks import FORKS
from evm.transactions import LEGACY
from keys.services import set_allowlist
from samples.sample import FIRST_BLOCKS
from tests.nodeapi.test_trace_calls_live import CALLER, CONTRACT, word
from tests.nodeapi.test_traces_live import (
    BLOCKS,
    BUSIEST,
    SOME,
    TRACERS,
    UNKNOWN,
    hash_of,
    name_of,
)
from tests.support import sample
from tests.support.live import Api, Live, api_key_of, request

CONFIG = ChainConfig.from_genesis(sample.genesis())
CALL_TRACER = {"tracer": "callTracer"}
AMSTERDAM = {**CALL_TRACER, "fork": "amsterdam"}
INVALID_PARAMS = -32602

OSAKA = hex(FIRST_BLOCKS["osaka"])
"""A block before Amsterdam, as are the blocks that are simulated after it."""

SLOT_NUMBER = "0x4b5f5260205ff3"
"""Code that returns SLOTNUM, an instruction of Amsterdam."""
RANDOM = "0x445f5260205ff3"
"""Code that returns PREVRANDAO, and uses PUSH0, which Shanghai has."""
BASE_FEES = "0x485f524a60205260405ff3"
"""Code that returns BASEFEE and BLOBBASEFEE."""


def fork_of(block: Block) -> str:
    header = block.header
    is_merged = header.difficulty == 0
    fork = CONFIG.fork_at(header.number, header.timestamp, is_merged)
    return "osaka" if fork.name.startswith("bpo") else fork.name


@pytest.fixture(scope="module")
def transfers(api: Api) -> list[str]:
    """Return the hashes of legacy transactions that only transfer ether."""
    names = [
        to_hex(each.hash)
        for block in BLOCKS
        for each in block.transactions
        if each.type == LEGACY and each.value and not each.data
    ]
    receipts = api.results(("eth_getTransactionReceipt", name) for name in names)
    return [each["transactionHash"] for each in receipts if each["gasUsed"] == "0x5208"]


@pytest.mark.parametrize("options", TRACERS, ids=name_of)
def test_by_its_own_fork_a_transaction_has_the_stored_trace(
    api: Api, options: dict[str, Any]
) -> None:
    compared = 0
    for block in SOME if options == CALL_TRACER else [BUSIEST]:
        entries = api.result("debug_traceBlockByHash", hash_of(block), options)
        given = {**options, "fork": fork_of(block)}
        for entry in entries[:8]:
            found = api.result("debug_traceTransaction", entry["txHash"], given)
            assert found == entry["result"]
            compared += 1
    assert compared > 5


def test_a_transaction_costs_what_the_other_fork_demands(
    api: Api, transfers: list[str]
) -> None:
    new_account = 183_600
    assert transfers
    for name in transfers:
        value = int(api.result("eth_getTransactionByHash", name)["value"], 16)
        options = {**AMSTERDAM, "tracerConfig": {"withLog": True}}
        found = api.result("debug_traceTransaction", name, options)
        assert int(found["gasUsed"], 16) - 21_000 in (0, new_account)
        (log,) = found["logs"]  # of the transfer (EIP-7708)
        assert log["data"] == word(value)
        options = {**options, "fork": "osaka"}
        found = api.result("debug_traceTransaction", name, options)
        assert "logs" not in found


def test_every_fork_has_a_name(api: Api, transfers: list[str]) -> None:
    for fork in FORKS[:-1]:
        given = {**CALL_TRACER, "fork": fork.name}
        found = api.result("debug_traceTransaction", transfers[0], given)
        assert found["gasUsed"] == "0x5208"


def test_an_unknown_fork_is_an_error_that_lists_the_known_ones(api: Api) -> None:
    call, name = {"to": CONTRACT}, to_hex(BUSIEST.transactions[0].hash)
    calls: list[tuple[Any, ...]] = [
        ("debug_traceTransaction", name, {"fork": "atlantis"}),
        ("debug_traceCall", call, "latest", {"fork": "atlantis"}),
        ("eth_call", call, "latest", None, {"fork": "atlantis"}),
        ("eth_estimateGas", call, "latest", None, {"fork": "atlantis"}),
        (
            "eth_simulateV1",
            {"blockStateCalls": [{"blockOverrides": {"fork": "atlantis"}}]},
        ),
    ]
    for method, *params in calls:
        code, message = api.error(method, *params)
        assert code == INVALID_PARAMS
        assert 'unknown fork "atlantis"' in message
        assert ", osaka, amsterdam" in message
    code, message = api.error("debug_traceBlockByNumber", "latest", AMSTERDAM)
    assert (code, "single transactions" in message) == (INVALID_PARAMS, True)
    code, message = api.error("debug_traceTransaction", name, {"fork": 7})
    assert "cannot unmarshal number" in message


def test_a_transaction_that_the_fork_does_not_allow_has_geths_error(api: Api) -> None:
    failed = 0
    for block in BLOCKS:
        for transaction in block.transactions:
            name = to_hex(transaction.hash)
            if transaction.type == 4:
                assert api.error(
                    "debug_traceTransaction", name, {**CALL_TRACER, "fork": "cancun"}
                ) == (-32000, "tracing failed: transaction type not supported")
                failed += 1
    assert failed
    # 600 bytes cost at least 16 gas each before Amsterdam, 64 from then on.
    call = {"to": CONTRACT, "data": "0x" + 600 * "00", "gas": hex(40_000)}
    text = "insufficient gas for floor data gas cost: have 40000, want 53400"
    for method, *params in (
        ("eth_call", call, "latest", None, {"fork": "amsterdam"}),
        ("debug_traceCall", call, "latest", AMSTERDAM),
    ):
        code, message = api.error(method, *params)
        assert (code, text in message) == (-32000, True)


def test_calls_have_the_instructions_of_the_fork(api: Api) -> None:
    overrides = {CONTRACT: {"code": SLOT_NUMBER}}
    call = {"from": CALLER, "to": CONTRACT}
    block = {"fork": "amsterdam"}
    assert api.result("eth_call", call, OSAKA, overrides, block) == word(0)
    slot = {**block, "slotNumber": "0x7"}
    assert api.result("eth_call", call, OSAKA, overrides, slot) == word(7)
    code, message = api.error("eth_call", call, OSAKA, overrides)
    assert (code, message) == (-32000, "invalid opcode: SLOTNUM")
    options = {**AMSTERDAM, "stateOverrides": overrides}
    assert api.result("debug_traceCall", call, OSAKA, options)["output"] == word(0)
    by_overrides = {**options, "fork": None, "blockOverrides": slot}
    found = api.result("debug_traceCall", call, OSAKA, by_overrides)
    assert found["output"] == word(7)
    both = {**options, "blockOverrides": {"fork": "osaka", "slotNumber": "0x9"}}
    assert api.result("debug_traceCall", call, OSAKA, both)["output"] == word(9)


def test_properties_that_the_block_lacks_are_zero(api: Api) -> None:
    call = {"from": CALLER, "to": CONTRACT, "gasPrice": "0x0"}
    osaka, cancun = {"fork": "osaka"}, {"fork": "cancun"}
    at = hex(1)  # a mined block, whose mix hash is no random number
    assert api.result("eth_getBlockByNumber", at, False)["difficulty"] != "0x0"
    code = {CONTRACT: {"code": RANDOM}}
    assert api.result("eth_call", call, at, code, osaka) == word(0)
    random = {**osaka, "prevRandao": word(5)}
    assert api.result("eth_call", call, at, code, random) == word(5)
    code = {CONTRACT: {"code": BASE_FEES}}
    paying = {**call, "gasPrice": "0x1"}
    rich = {**code, CALLER: {"balance": hex(10**18)}}
    found = api.result("eth_call", paying, at, rich, cancun)
    assert found == word(0) + word(1)[2:]


def test_an_estimate_is_that_of_the_fork(api: Api) -> None:
    zeros = {"from": CALLER, "to": CALLER}
    for fork, gas in (("osaka", 21_000), ("amsterdam", 12_000)):
        found = api.result("eth_estimateGas", zeros, "latest", None, {"fork": fork})
        assert int(found, 16) == gas


def test_simulated_blocks_have_forks_of_their_own(api: Api) -> None:
    call = {"from": CALLER, "to": CONTRACT, "value": "0x1", "gas": "0xffff"}
    state = {CALLER: {"balance": "0xff"}, CONTRACT: {"code": SLOT_NUMBER}}

    def block(fork: str) -> dict[str, Any]:
        overrides = {"fork": fork}
        return {"blockOverrides": overrides, "stateOverrides": state, "calls": [call]}

    forks = ("osaka", "amsterdam", "amsterdam", "cancun", "london")
    payload = {"blockStateCalls": [*map(block, forks), {"calls": [call]}]}
    found = api.result("eth_simulateV1", payload, OSAKA)
    assert [len(each["calls"]) for each in found] == [1] * 6
    outputs = [each["calls"][0]["returnData"] for each in found]
    assert outputs == ["0x", word(0), word(1), "0x", "0x", "0x"]
    assert [len(each["calls"][0]["logs"]) for each in found] == [0, 1, 1, 0, 0, 0]
    assert "requestsHash" in found[0]
    assert "requestsHash" not in found[3]
    assert "withdrawalsRoot" not in found[4]


def test_traces_by_another_fork_need_the_entitlement(live: Live) -> None:
    with live.api(key=live.new_key()) as api:
        name = to_hex(BUSIEST.transactions[0].hash)
        response = api.send(request("debug_traceTransaction", name, AMSTERDAM))
        assert response.status_code == 403


# portcullis_compareForks

FORWARD = "0x5f5f5f5f5f73" + CONTRACT[2:] + "5af15f5260205ff3"
"""Code that calls CONTRACT with all gas, and returns whether that has succeeded."""


def test_a_compared_transaction_is_its_receipt(api: Api) -> None:
    for transaction in BUSIEST.transactions[:12]:
        name = to_hex(transaction.hash)
        receipt = api.result("eth_getTransactionReceipt", name)
        found = api.result("portcullis_compareForks", name, None, "osaka")
        assert found["firstDifference"] is None
        own, osaka = found["forkA"], found["forkB"]
        for outcome in (own, osaka):
            assert outcome["status"] == receipt["status"]
            assert outcome["gasUsed"] == outcome["executionGas"] == receipt["gasUsed"]
            assert outcome["stateGas"] == "0x0"
        assert [
            {name: log[name] for name in ("address", "topics", "data")}
            for log in receipt["logs"]
        ] == own["logs"]


def test_the_first_frame_that_differs_is_the_cause(api: Api) -> None:
    forwarder = "0x" + "f0" * 20
    state = {CONTRACT: {"code": SLOT_NUMBER}, forwarder: {"code": FORWARD}}
    call = {"from": CALLER, "to": forwarder, "gas": "0xffffff"}
    found = api.result("portcullis_compareForks", call, None, "amsterdam", OSAKA, state)
    assert [found[each]["status"] for each in ("forkA", "forkB")] == ["0x1", "0x1"]
    assert [found[each]["output"] for each in ("forkA", "forkB")] == [word(0), word(1)]
    difference = found["firstDifference"]
    assert difference["path"] == [0]
    assert difference["differs"] == ["error", "output"]
    assert difference["frameA"]["error"] == "invalid opcode: SLOTNUM"
    assert "error" not in difference["frameB"]
    assert difference["frameB"]["output"] == word(0)
    newest = api.result("portcullis_compareForks", call, None, None, OSAKA, state)
    assert newest == found
    slots = [None, None, OSAKA, state, {"slotNumber": "0x5"}]
    found = api.result("portcullis_compareForks", call, *slots)
    assert found["firstDifference"]["frameB"]["output"] == word(5)


def test_a_transaction_that_one_fork_does_not_allow_has_no_status_there(
    api: Api,
) -> None:
    (transaction, *_) = [
        each for block in BLOCKS for each in block.transactions if each.type == 4
    ]
    name = to_hex(transaction.hash)
    found = api.result("portcullis_compareForks", name, "london", "prague")
    assert found["forkA"] == {
        "fork": "london",
        "status": None,
        "error": "transaction type not supported",
        "logs": [],
    }
    assert found["forkB"]["status"] is not None
    assert found["firstDifference"] is None


def test_comparisons_reject_wrong_arguments(api: Api, live: Live) -> None:
    name, method = to_hex(BUSIEST.transactions[0].hash), "portcullis_compareForks"
    code, message = api.error(method, name, "atlantis")
    assert (code, "unknown fork" in message) == (INVALID_PARAMS, True)
    code, message = api.error(method, name, None, None, "latest")
    assert (code, "for calls only" in message) == (INVALID_PARAMS, True)
    assert api.error(method, UNKNOWN) == (-32000, "transaction not found")
    with live.api(key=live.new_key()) as plain:
        assert plain.send(request(method, name)).status_code == 403
    key = live.new_key(may_trace=True)
    set_allowlist(api_key=api_key_of(key), kind="contract", values=[CONTRACT])
    with live.api(key=key) as guarded:
        assert guarded.result(method, {"to": CONTRACT})["firstDifference"] is None
        assert guarded.send(request(method, {"to": CALLER})).status_code == 403
