"""Random calls with overrides have geth's results, estimates, and traces by any tracer."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evm.rules.fork import Fork
from evm.rules.forks import AMSTERDAM, OSAKA
from networks.models import Network
from networks.services import configure_network
from tests.golden.chains import CHAINS
from tests.golden.differences import expected
from tests.golden.geth import Geth, GethError, running_geth
from tests.golden.recording import Call, Recording
from tests.golden.test_golden import difference
from tests.live import programs
from tests.support import chains
from tests.support.live import Api, live_service
from tests.support.random_arguments import RandomArguments

SEED = 21
_NOTHING_RECORDED = Recording("", "", [])
TRACERS: list[dict[str, Any]] = [
    {},
    {"enableMemory": True, "enableReturnData": True},
    {"tracer": "callTracer"},
    {"tracer": "callTracer", "tracerConfig": {"withLog": True}},
    {"tracer": "flatCallTracer"},
    {"tracer": "flatCallTracer", "tracerConfig": {"convertParityErrors": True}},
    {"tracer": "prestateTracer"},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {"tracer": "4byteTracer"},
    {"tracer": "keccak256PreimageTracer"},
    {"tracer": "opcountTracer"},
    {
        "tracer": "muxTracer",
        "tracerConfig": {"callTracer": {"withLog": True}, "prestateTracer": {}},
    },
    {
        "tracer": "{step: function() {}, fault: function() {}, result: function(ctx) {"
        "return [ctx.type, ctx.block, ctx.gas, ctx.gasUsed, ctx.txIndex, ctx.blockHash,"
        "ctx.error, toHex(ctx.from), toHex(ctx.to)]}}"
    },
]


class Both(NamedTuple):
    """geth and the service, with the same chain."""

    geth: Geth
    api: Api
    transactions: list[int]
    """Number of transactions of each block, from block 1 on."""


@pytest.fixture(scope="module")
def both(
    live_blocks: int, module_db: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    try:
        binary = programs.geth()
    except GethError as error:
        pytest.skip(str(error))
    chain = CHAINS["sample"]()
    chains.import_blocks("sample", chain.genesis, chain.raw)
    network = Network.objects.get(slug="sample")
    configure_network(network=network, emit_total_difficulty=False)
    folder: Path = tmp_path_factory.mktemp("geth")
    with (
        running_geth(binary, chain.genesis, b"".join(chain.raw), folder) as geth,
        live_service() as live,
        live.api("sample", live.new_key(may_trace=True)) as api,
    ):
        counts = [
            int(api.result("eth_getBlockTransactionCountByNumber", hex(number)), 16)
            for number in range(1, len(chain.raw) + 1)
        ]
        yield Both(geth, api, counts)


class RandomCalls:
    """Makes the arguments of debug_traceCall."""

    def __init__(self, seed: int, fork: Fork, transactions: list[int]) -> None:
        """transactions: number of transactions of each block."""
        self._choose = random.Random(seed)
        self._arguments = RandomArguments(seed, fork)
        self._transactions = transactions

    def params(self) -> list[Any]:
        choose = self._choose
        # The contracts have instructions that the first forks lack.
        last = len(self._transactions)
        number = last if choose.random() < 0.5 else choose.randrange(last // 2, last)
        state = self._arguments.state()
        options = {**choose.choice(TRACERS), "stateOverrides": state}
        if choose.random() < 0.3:
            options["blockOverrides"] = self._arguments.block(number)
        if choose.random() < 0.3:
            count = self._transactions[number - 1] if number else 0
            options["txIndex"] = hex(choose.randrange(count + 2))
        return [self._arguments.call(), hex(number), options]


def compare(both: Both, method: str, params: list[Any]) -> str:
    """Compare a response with geth's, and return its kind."""
    call = Call("", method, params)
    theirs, _ = expected(call, both.geth.call(method, params), _NOTHING_RECORDED)
    answer = both.api.ask(method, *params)
    ours = {name: answer[name] for name in ("result", "error") if name in answer}
    assert ours == theirs, (method, json.dumps(params), difference(ours, theirs))
    return "result" if "result" in theirs else theirs["error"]["message"][:24]


def test_random_calls_and_estimates_are_geths(both: Both, live_blocks: int) -> None:
    last = hex(len(both.transactions))
    kinds: Counter[str] = Counter()
    # The accesses of Amsterdam's contracts depend on the gas, so that no list is final.
    for fork, methods in (
        (AMSTERDAM, ("eth_call", "eth_estimateGas")),
        (OSAKA, ("eth_estimateGas", "eth_createAccessList")),
    ):
        arguments = RandomArguments(SEED, fork)
        for _ in range(live_blocks):
            call, state = arguments.call(), arguments.state()
            if "gas" in call:
                for method in methods:
                    kind = compare(both, method, [call, last, state])
                    kinds[f"{method}: {kind}"] += 1
    print("outcomes:", dict(kinds))


def test_random_calls_have_geths_traces(both: Both, live_blocks: int) -> None:
    calls = RandomCalls(SEED, AMSTERDAM, both.transactions)
    kinds: Counter[str] = Counter()
    for _ in range(2 * live_blocks):
        kinds[compare(both, "debug_traceCall", calls.params())] += 1
    print("outcomes:", dict(kinds))
    assert kinds["result"] > live_blocks
