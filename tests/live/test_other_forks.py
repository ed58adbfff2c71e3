"""Calls by the rules of other forks, compared with geths whose genesis has these forks.

The service has the blocks of Amsterdam, whose genesis has Osaka. Each geth has only block 0,
with the same accounts. The calls are the transactions of all blocks, on block 0.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nodeapi.chain.sources import BlockFile
from tests.golden.geth import GethError, running_geth
from tests.live import programs
from tests.nodeapi.test_trace_calls_live import call_of
from tests.support import amsterdam, chains
from tests.support.live import Api, live_service

LAST_KEYS = {
    "amsterdam": "amsterdamTime",
    "osaka": "bpo2Time",
    "prague": "pragueTime",
    "cancun": "cancunTime",
    "shanghai": "shanghaiTime",
}
"""The last key of a genesis that has a fork."""
TIME_KEYS = (
    *("shanghaiTime", "cancunTime", "pragueTime", "osakaTime", "bpo1Time", "bpo2Time"),
    "amsterdamTime",
)
FEES = ("gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas")

TRACERS: list[dict[str, Any]] = [
    {"tracer": "callTracer", "tracerConfig": {"withLog": True}},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {},
]

NO_CODE_HASH = {"codeHash": f"0x{'00' * 32}"}
"""What geth shows for accounts that a call has only touched."""


@pytest.fixture(scope="module")
def api(live_blocks: int, module_db: None) -> Iterator[Api]:
    with BlockFile(amsterdam.chain_file()).open() as blocks:
        chains.import_blocks("amsterdam", amsterdam.genesis(), blocks)
    with live_service() as live, live.api(key=live.new_key(may_trace=True)) as api:
        yield api


@pytest.fixture(scope="module")
def calls(api: Api) -> list[dict[str, Any]]:
    """Return a free call for each transaction, with more gas than it had."""
    head = int(api.result("eth_blockNumber"), 16)
    found = []
    for number in range(1, head + 1):
        block = api.result("eth_getBlockByNumber", hex(number), True)
        for transaction in block["transactions"]:
            call = call_of(transaction)
            for name in (*FEES, "nonce"):
                call.pop(name, None)
            call["gas"] = hex(min(3 * int(call["gas"], 16), 50_000_000))
            found.append(call)
    return found


def genesis_of(fork: str) -> dict[str, Any]:
    """Return the genesis of Amsterdam's blocks with a fork from block 0 on."""
    genesis: dict[str, Any] = copy.deepcopy(amsterdam.genesis())
    config = genesis["config"]
    last = TIME_KEYS.index(LAST_KEYS[fork])
    for place, key in enumerate(TIME_KEYS):
        config.pop(key)
        if place <= last:
            config[key] = 0
    schedule = config.pop("blobSchedule")
    kept = {name: schedule[name] for name in schedule if f"{name}Time" in config}
    if kept:
        config["blobSchedule"] = kept
    return genesis


def answer(response: dict[str, Any]) -> Any:
    """Return what has to be equal of a response."""
    if "error" in response:
        return response["error"]["message"]
    result = response["result"]
    if "post" in result:
        post = result["post"].items()
        result["post"] = {name: each for name, each in post if each != NO_CODE_HASH}
    return result


def questions(
    call: dict[str, Any], fork: str
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Yield what geth is asked about a call, and the same for the service."""
    without_limit = {**call, "gas": None}
    for method, asked in (("eth_call", call), ("eth_estimateGas", without_limit)):
        yield (method, asked, "0x0"), (method, asked, "0x0", None, {"fork": fork})
    for options in TRACERS:
        params = ("debug_traceCall", call, "0x0")
        yield (*params, options), (*params, {**options, "fork": fork})


@pytest.mark.parametrize("fork", LAST_KEYS)
def test_calls_by_a_fork_are_those_of_a_geth_that_has_it(
    api: Api, calls: list[dict[str, Any]], fork: str, tmp_path: Path
) -> None:
    try:
        binary = programs.geth()
    except GethError as error:
        pytest.skip(str(error))
    asked = [each for call in calls for each in questions(call, fork)]
    with (
        running_geth(binary, genesis_of(fork), b"", tmp_path) as geth,
        ThreadPoolExecutor(1) as other,
    ):
        waiting = other.submit(geth.batch, [theirs for theirs, _ in asked])
        found, expected = api.batch([ours for _, ours in asked]), waiting.result()
    wrong = [
        ours
        for (_, ours), *both in zip(asked, found, expected, strict=True)
        if answer(both[0]) != answer(both[1])
    ]
    assert len(calls) > 250
    assert not wrong, f"{len(wrong)} answers differ: {wrong[:3]}"
