"""`trace_filter` and `trace_get`, compared with `trace_block`, over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from keys.allowlists import CONTRACT
from keys.services import set_allowlist
from tests.support import sample
from tests.support.live import Api, Live, api_key_of, request

HEAD = len(sample.raw_blocks())
UNKNOWN = "0x" + "12" * 32


@pytest.fixture(scope="module")
def everything(api: Api) -> list[dict[str, Any]]:
    """Return the traces of all blocks."""
    blocks = api.results(("trace_block", hex(number)) for number in range(HEAD + 1))
    return [trace for block in blocks for trace in block]


def test_filter_finds_what_trace_block_returns(
    api: Api, everything: list[dict[str, Any]]
) -> None:
    calls = [trace for trace in everything if trace["type"] == "call"]
    for trace in calls[:: len(calls) // 20]:
        action = trace["action"]
        wanted = {"fromAddress": [action["from"]], "toAddress": [action["to"]]}
        both = api.result("trace_filter", {**wanted, "mode": "intersection"})
        assert trace in both
        either = api.result("trace_filter", wanted)
        assert [each for each in either if each in both] == both
        number = trace["blockNumber"]
        here = {**wanted, "fromBlock": hex(number), "toBlock": number}
        assert api.result("trace_filter", here) == [
            each for each in either if each["blockNumber"] == number
        ]
        page = {**wanted, "after": 1, "count": "0x2"}
        assert api.result("trace_filter", page) == either[1:3]


def test_filter_without_addresses_returns_all_traces_of_few_blocks(
    api: Api, everything: list[dict[str, Any]]
) -> None:
    last = min(HEAD, 99)
    found = api.result("trace_filter", {"fromBlock": "earliest", "toBlock": hex(last)})
    assert found == [each for each in everything if each["blockNumber"] <= last]
    newest = api.result("trace_filter", {"fromBlock": "latest"})
    assert newest == api.result("trace_block", "latest")
    assert api.result("trace_filter", {"fromBlock": HEAD + 1, "toBlock": 2**40}) == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"fromBlock": "0x5", "toBlock": "0x4"},
            "invalid parameters: fromBlock cannot be greater than toBlock",
        ),
        (
            {"toBlock": "0x64"},
            "Block range too large; currently limited to 100 blocks",
        ),
        (
            {"mode": "both"},
            'invalid argument 0: mode must be "union" or "intersection"',
        ),
        (
            {"toAddress": ["0x" + "00" * 19]},
            "invalid argument 0: hex string has length 38, want 40 for common.Address",
        ),
        (
            {"toAddress": [f"0x{number:040x}" for number in range(1001)]},
            "too many addresses (max 1000)",
        ),
    ],
)
def test_wrong_filters_are_invalid_params(
    api: Api, wanted: dict[str, Any], message: str
) -> None:
    assert HEAD >= 100
    assert api.error("trace_filter", wanted) == (-32602, message)


def test_get_returns_one_of_the_traces_of_a_transaction(
    api: Api, everything: list[dict[str, Any]]
) -> None:
    names = {each["transactionHash"] for each in everything if each["traceAddress"]}
    for name in sorted(names)[:5]:
        traces = api.result("trace_transaction", name)
        assert len(traces) > 1
        found = [api.result("trace_get", name, [n]) for n in range(len(traces))]
        assert found == traces
        assert api.result("trace_get", name, [hex(len(traces))]) is None
        assert api.result("trace_get", name, ["0x0", "0x1"]) is None
    assert api.result("trace_get", UNKNOWN, ["0x0"]) is None


def test_addresses_outside_of_the_allowlist_are_refused(live: Live) -> None:
    key = live.new_key(may_trace=True)
    allowed, other = ("0x" + byte * 20 for byte in ("ab", "cd"))
    set_allowlist(api_key=api_key_of(key), kind=CONTRACT, values=[allowed])
    with live.api(key=key) as api:
        for wanted, status in (
            ({"toAddress": [allowed]}, 200),
            ({"toAddress": [allowed, other]}, 403),
            ({"fromAddress": [other]}, 403),
        ):
            response = api.send(request("trace_filter", wanted))
            assert response.status_code == status, response.text
