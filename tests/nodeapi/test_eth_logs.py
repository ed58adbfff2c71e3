"""`eth_getLogs`, compared with the logs of all receipts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from keys.services import set_allowlist
from tests.support import chains, copies, sample
from tests.support.live import Api, Live, api_key_of, live_service, request
from tests.support.log_filters import UNKNOWN_ADDRESS, matching, random_filter
from tests.support.tokens import GENESIS, Tokens
from tests.support.waiting import wait_until

HEAD = len(sample.raw_blocks())
MAX_LOGS = 20
INVALID_RANGE = "invalid block range params"
UNKNOWN_HASH = "0x" + "12" * 32


@pytest.fixture(scope="module")
def logs(api: Api) -> list[Any]:
    """Return all logs of the chain."""
    calls = [("eth_getBlockReceipts", hex(number)) for number in range(HEAD + 1)]
    receipts = [receipt for block in api.results(calls) for receipt in block]
    return [log for receipt in receipts for log in receipt["logs"]]


def within(logs: list[Any], first: int, last: int) -> list[Any]:
    return [log for log in logs if first <= int(log["blockNumber"], 16) <= last]


def results(api: Api, calls: list[tuple[Any, ...]], start: int) -> list[Any]:
    """Return the answers to 50 calls, which fit into a batch."""
    return api.results(calls[start : start + 50])


def test_random_filters_select_the_logs_of_receipts(api: Api, logs: list[Any]) -> None:
    chance = random.Random(20)
    calls, expected = [], []
    for _ in range(500):
        wanted = random_filter(chance, logs)
        first, last = sorted(chance.choices(range(HEAD + 1), k=2))
        found = matching(within(logs, first, last), wanted)
        if chance.random() < 0.2:
            block = api.result("eth_getBlockByNumber", hex(first), False)["hash"]
            found = matching(within(logs, first, first), wanted)
            calls.append(("eth_getLogs", {**wanted, "blockHash": block}))
        else:
            blocks = {"fromBlock": hex(first), "toBlock": hex(last)}
            calls.append(("eth_getLogs", {**wanted, **blocks}))
        expected.append(found)
    found = [log for start in range(0, 500, 50) for log in results(api, calls, start)]
    assert found == expected
    assert sum(map(bool, expected)) > 100


def test_all_logs_of_the_chain(api: Api, logs: list[Any]) -> None:
    assert api.result("eth_getLogs", {"fromBlock": "earliest"}) == logs
    newest = within(logs, HEAD, HEAD)
    for wanted in ({}, {"fromBlock": "finalized", "toBlock": "safe"}):
        assert api.result("eth_getLogs", wanted) == newest


def test_mixed_case_and_missing_addresses(api: Api, logs: list[Any]) -> None:
    address = logs[0]["address"]
    blocks = {"fromBlock": "0x0", "toBlock": hex(HEAD)}
    upper = "0X" + address[2:].upper()
    assert api.result("eth_getLogs", {**blocks, "address": upper}) == matching(
        logs, {"address": address}
    )
    assert api.result("eth_getLogs", {**blocks, "address": UNKNOWN_ADDRESS}) == []
    assert api.result("eth_getLogs", {**blocks, "address": []}) == logs


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        ("x", -32602, "json: cannot unmarshal string into Go value of type"),
        (
            {"blockHash": UNKNOWN_HASH, "toBlock": "latest"},
            -32602,
            "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other",
        ),
        (
            {"blockHash": "0x12"},
            -32602,
            "hex string has length 2, want 64 for common.Hash",
        ),
        (
            {"blockHash": 1},
            -32602,
            "json: cannot unmarshal non-string into Go struct field input.blockHash "
            "of type common.Hash",
        ),
        ({"fromBlock": "1"}, -32602, "hex string without 0x prefix"),
        (
            {"address": "0x12"},
            -32602,
            "invalid address: hex has invalid length 1 after",
        ),
        ({"address": ["", 1]}, -32602, "invalid address at index 0: empty hex string"),
        ({"address": [1]}, -32602, "non-string address at index 0"),
        ({"address": {}}, -32602, "invalid addresses in query"),
        (
            {"topics": "0x"},
            -32602,
            "json: cannot unmarshal string into Go struct field input.topics "
            "of type []interface {}",
        ),
        ({"topics": [None] * 5}, -32602, "exceed max topics"),
        ({"topics": [[UNKNOWN_HASH] * 1001]}, -32602, "exceed max topics"),
        ({"topics": [{}]}, -32602, "invalid topic(s)"),
        ({"topics": [[1]]}, -32602, "invalid topic(s)"),
        (
            {"topics": ["0x12"]},
            -32602,
            "hex has invalid length 1 after decoding; expected 32 for topic",
        ),
        ({"topics": ["0xzz"]}, -32602, "invalid hex string"),
        ({"topics": ["0x123"]}, -32602, "hex string of odd length"),
    ],
)
def test_malformed_criteria_get_geths_errors(
    api: Api, wanted: Any, code: int, message: str
) -> None:
    found, text = api.error("eth_getLogs", wanted)
    assert found == code
    assert text.startswith(f"invalid argument 0: {message}")


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (
            {"address": [UNKNOWN_ADDRESS] * 1001},
            -32000,
            "exceed max addresses or topics",
        ),
        ({"blockHash": UNKNOWN_HASH}, -32000, "unknown block"),
        ({"fromBlock": "0x5", "toBlock": "0x4"}, -32602, INVALID_RANGE),
        ({"fromBlock": "0x5", "toBlock": "earliest"}, -32602, INVALID_RANGE),
        ({"fromBlock": hex(HEAD + 1)}, -32602, INVALID_RANGE),
        ({"fromBlock": "latest", "toBlock": hex(HEAD)}, -32602, INVALID_RANGE),
        ({"fromBlock": "pending"}, -32602, "pending logs are not supported"),
        (
            {"fromBlock": "0x1", "toBlock": hex(HEAD + 1)},
            -32602,
            "block range extends beyond current head block",
        ),
    ],
)
def test_criteria_without_answer_get_geths_errors(
    api: Api, wanted: Any, code: int, message: str
) -> None:
    found, text = api.error("eth_getLogs", wanted)
    assert (found, text[: len(message)]) == (code, message)


def test_key_with_contracts_searches_these_only(live: Live, logs: list[Any]) -> None:
    address = logs[0]["address"]
    secret = live.new_key()
    set_allowlist(api_key=api_key_of(secret), kind="contract", values=[address])
    blocks = {"fromBlock": "0x0"}
    with live.api("sample", secret) as api:
        wait_until(lambda: api.send(request("eth_getLogs", blocks)).status_code == 403)
        allowed = {**blocks, "address": address}
        assert api.result("eth_getLogs", allowed) == matching(logs, allowed)
        other = {**blocks, "address": [address, UNKNOWN_ADDRESS]}
        assert api.send(request("eth_getLogs", other)).status_code == 403


def test_side_block_is_searched_by_its_hash(transactional_db: None) -> None:
    tokens = Tokens()
    left, right = tokens.chain.fork(), tokens.chain.fork()
    (side,) = tokens.grow(left, 1, amount=5)
    canonical = tokens.grow(right, 2, amount=6)
    chains.import_blocks("net", GENESIS, [*tokens.chain.blocks, side, *canonical])
    with live_service() as live, live.api("net") as api:
        found = api.result("eth_getLogs", {"blockHash": "0x" + side.header.hash.hex()})
        assert [int(log["data"], 16) for log in found] == [5, 5]
        found = api.result("eth_getLogs", {"fromBlock": "0x2"})
        assert [int(log["data"], 16) for log in found] == [6] * 4
        names = {"0x" + block.header.hash.hex() for block in canonical}
        assert {log["blockHash"] for log in found} == names


def test_too_many_logs_are_an_error_with_a_range_that_works(
    transactional_db: None,
) -> None:
    copies.sample_chain()
    env = {"NODEAPI_MAX_LOGS": str(MAX_LOGS)}
    with live_service(env=env) as live, live.api("sample") as api:
        number, found = 0, []
        while number <= HEAD:
            wanted = {"fromBlock": hex(number), "toBlock": hex(HEAD)}
            answer = api.ask("eth_getLogs", wanted)
            if "error" in answer:
                error = answer["error"]
                data = error["data"]
                assert data == {
                    "from": hex(number),
                    "limit": MAX_LOGS,
                    "to": data["to"],
                }
                assert (error["code"], error["message"]) == (
                    -32005,
                    f"query returned more than {MAX_LOGS} results. Try with this block "
                    f"range [{data['from']}, {data['to']}].",
                )
                wanted["toBlock"] = data["to"]
                answer = api.ask("eth_getLogs", wanted)
            found += answer["result"]
            number = int(wanted["toBlock"], 16) + 1
        calls = [("eth_getBlockReceipts", hex(n)) for n in range(HEAD + 1)]
        receipts = [receipt for block in api.results(calls) for receipt in block]
        assert found == [log for receipt in receipts for log in receipt["logs"]]
