"""Unusual requests for traces, and clients that disconnect."""

from __future__ import annotations

import json
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from evm.blocks import decode_block
from tests.support import sample
from tests.support.live import Api, Live, request
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("module_db")

RAW_BLOCKS = sample.raw_blocks()
BLOCKS = [decode_block(raw) for raw in RAW_BLOCKS]
BLOCK = next(block for block in BLOCKS if 2 < len(block.transactions) < 8)
NAME = f"0x{BLOCK.header.hash.hex()}"
COUNT = len(BLOCK.transactions)
CALLS = {"tracer": "callTracer"}

MANY = 60


@pytest.mark.parametrize("options", [CALLS, {"tracer": "4byteTracer"}, {}])
def test_pending_is_the_head_as_long_as_there_is_nothing_pending(
    api: Api, options: dict[str, Any]
) -> None:
    latest = api.result("debug_traceBlockByNumber", "latest", options)
    assert api.result("debug_traceBlockByNumber", "pending", options) == latest


@pytest.mark.parametrize("tracer", [CALLS, {}, {"tracer": "prestateTracer"}])
def test_a_slice_may_reach_beyond_the_block(api: Api, tracer: dict[str, Any]) -> None:
    whole = api.result("debug_traceBlockByHash", NAME, tracer)
    assert len(whole) == COUNT

    def part(**limits: Any) -> Any:
        return api.result("debug_traceBlockByHash", NAME, tracer | limits)

    for far in (COUNT, 2**31, 2**32 - 1, 2**63, 2**64 - 1):
        assert part(toTx=far) == whole
        assert part(fromTx=far) == []
    assert part(fromTx=COUNT - 1) == whole[-1:]
    assert part(fromTx=0, toTx=0) == whole[:1]
    assert part(fromTx=None, toTx=None) == whole
    assert part(FROMTX=1, totx=1) == whole[1:2]


@pytest.mark.parametrize(
    "position",
    [-1, -(2**70), 10**30, 1.5, True, "0x", "0x01", "1", "-0x1", [], {}, "0xg"],
)
def test_what_is_no_position_is_refused(api: Api, position: Any) -> None:
    for key in ("fromTx", "toTx"):
        code, message = api.error(
            "debug_traceBlockByHash", NAME, {**CALLS, key: position}
        )
        assert code == -32602
        assert message.startswith("invalid argument 1: ")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (hex(2**63 - 1), f"block #{2**63 - 1} not found"),
        (hex(2**63), "invalid argument 0: block number larger than int64"),
        (hex(2**64), "invalid argument 0: hex number > 64 bits"),
        ("0x" + "f" * 5000, "invalid argument 0: hex number > 64 bits"),
    ],
)
def test_a_number_may_be_too_large(api: Api, number: str, message: str) -> None:
    _, told = api.error("debug_traceBlockByNumber", number, CALLS)
    assert told == message


@pytest.mark.parametrize("identifier", ["x" * 5000, 2**80, -(10**40), 1.5, None, ""])
def test_an_id_comes_back_with_a_trace(api: Api, identifier: Any) -> None:
    for options in (CALLS, {}):
        message = {**request("debug_traceBlockByHash", NAME, options), "id": identifier}
        answer = api.send(message).json()
        assert answer["id"] == identifier
        assert len(answer["result"]) == COUNT


ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**63,
        2**64,
        1e300,
        1.5,
        "",
        "0x",
        "0x1",
        "5s",
        "-5s",
    ),
    *("0", "1h1h", "callTracer", "prestateTracer", "muxTracer", "{", "{}", "\x00", "é"),
    *([], {}, [1], {"a": {"b": []}}, "opcountTracer", "noopTracer", "9" * 400),
]
NAMES = (
    *("tracer", "tracerConfig", "timeout", "reexec", "overrides", "debug"),
    *("enableMemory", "disableStack", "disableStorage", "enableReturnData", "limit"),
    *("fromTx", "toTx", "TRACER", "unknown", ""),
)
INNER = (
    *("onlyTopCall", "withLog", "diffMode", "disableCode", "disableStorage"),
    *("includeEmpty", "convertParityErrors", "includePrecompiles"),
    *("callTracer", "prestateTracer", "flatCallTracer", "muxTracer", "nonesuch"),
)
TRACERS = (
    *("callTracer", "prestateTracer", "flatCallTracer", "4byteTracer", "noopTracer"),
    *("muxTracer", "opcountTracer"),
)


def odd_options(choose: random.Random) -> dict[str, Any]:
    options = {
        choose.choice(NAMES): choose.choice(ODD) for _ in range(choose.randrange(4))
    }
    if choose.random() < 0.7:
        options["tracer"] = choose.choice(TRACERS)
    if choose.random() < 0.5:
        options["tracerConfig"] = {
            choose.choice(INNER): choose.choice([*ODD, True, True])
            for _ in range(choose.randrange(4))
        }
    return options


def test_odd_options_give_entries_or_an_error_that_tells(api: Api) -> None:
    choose, answered, refused = random.Random(5), 0, 0
    for _ in range(600):
        options = odd_options(choose)
        answer = api.ask("debug_traceBlockByHash", NAME, options)
        if "error" in answer:
            assert answer["error"]["code"] in (-32602, -32000), (options, answer)
            assert answer["error"]["message"], options
            refused += 1
            continue
        answered += 1
        assert len(answer["result"]) <= COUNT
        for entry in answer["result"]:
            assert entry.keys() in ({"txHash", "result"}, {"txHash", "error"}), options
    assert answered > 100
    assert refused > 100


def leave(live: Live, path: str, body: bytes, seconds: float) -> None:
    """Send a request, and disconnect after a while."""
    host, _, port = live.base_url.removeprefix("http://").rpartition(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), PATIENCE_SECONDS) as connection:
        connection.sendall(head.encode() + body)
        time.sleep(seconds)


def test_client_that_disconnects_frees_its_place(live: Live) -> None:
    key, choose = live.new_key(may_trace=True), random.Random(6)
    path = f"/v3/{key}"

    def body(number: int) -> bytes:
        # Different programs, because equal jobs would share an execution.
        tracer = f"{{step: function() {{}}, fault: function() {{}}, result: function() {{ return {number} }}}}"
        call = request("debug_traceBlockByHash", NAME, {"tracer": tracer})
        return json.dumps(call).encode()

    with ThreadPoolExecutor(4) as clients:
        for number in range(MANY):
            seconds = choose.choice([0, 0.002, 0.01, 0.05, 0.2])
            clients.submit(leave, live, path, body(number), seconds)
    with live.api(key=key) as api, live.api(key=key) as other:
        wait_until(lambda: api.post(body(MANY)).status_code == 200)
        # The key can still have the maximum number of concurrent traces.
        with ThreadPoolExecutor(2) as clients:
            for round_number in range(5):
                numbers = (2 * MANY + 2 * round_number, 2 * MANY + 2 * round_number + 1)
                answers = clients.map(
                    lambda each, number: each.post(body(number)), (api, other), numbers
                )
                for number, answer in zip(numbers, answers, strict=True):
                    results = [entry["result"] for entry in answer.json()["result"]]
                    assert results == [number] * COUNT
