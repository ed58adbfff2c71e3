"""debug_traceCall gives geth's results: random calls with overrides, by every tracer."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evm.fork import Fork
from evm.forks import OSAKA
from evm.transactions import CREATE_ADDRESS
from networks.models import Network
from networks.services import configure_network
from tests.golden.chains import CHAINS
from tests.golden.differences import expected
from tests.golden.geth import Geth, GethError, running_geth
from tests.golden.recording import Call, Recording
from tests.golden.test_golden import difference
from tests.live import programs
from tests.support import chains
from tests.support.executed import SENDER
from tests.support.live import Api, live_service
from tests.support.random_calls import random_accounts, random_transaction

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


def text(value: bytes) -> str:
    return "0x" + value.hex()


def word(value: int) -> str:
    return f"0x{value:064x}"


class RandomCalls:
    """Makes the arguments of debug_traceCall."""

    def __init__(self, seed: int, fork: Fork, transactions: list[int]) -> None:
        """transactions: number of transactions of each block."""
        self._choose = random.Random(seed)
        self._fork = fork
        self._transactions = transactions

    def params(self) -> list[Any]:
        choose = self._choose
        # The contracts have instructions that the first forks lack.
        last = len(self._transactions)
        number = last if choose.random() < 0.5 else choose.randrange(last // 2, last)
        options = {**choose.choice(TRACERS), "stateOverrides": self._state()}
        if choose.random() < 0.3:
            options["blockOverrides"] = self._block(number)
        if choose.random() < 0.3:
            count = self._transactions[number - 1] if number else 0
            options["txIndex"] = hex(choose.randrange(count + 2))
        return [self._call(), hex(number), options]

    def _state(self) -> dict[str, Any]:
        accounts = {
            text(address): {
                "balance": hex(account.balance),
                "nonce": hex(account.nonce),
                "code": text(account.code),
                "stateDiff": {word(k): word(v) for k, v in account.storage.items()},
            }
            for address, account in random_accounts(self._choose, self._fork).items()
        }
        accounts[text(SENDER)] = {"balance": hex(10**21)}
        if self._choose.random() < 0.1:
            accounts[text(b"\4".rjust(20, b"\0"))] = {
                "movePrecompileToAddress": text(b"\xab" * 20)
            }
        return accounts

    def _block(self, number: int) -> dict[str, Any]:
        choose = self._choose
        values = {
            "number": hex(choose.choice([number + 1, number + 2, number])),
            "feeRecipient": text(b"\xfe" * 20),
            "baseFeePerGas": hex(choose.choice([0, 7, 10**9])),
            "prevRandao": word(choose.randrange(2**256)),
            "gasLimit": hex(choose.randrange(2**32)),
            "beaconRoot": word(1),
        }
        weights = {"beaconRoot": 0.02}
        return {
            name: value
            for name, value in values.items()
            if choose.random() < weights.get(name, 0.4)
        }

    def _call(self) -> dict[str, Any]:
        choose = self._choose
        made = random_transaction(choose, self._fork, 0)
        call: dict[str, Any] = {
            "from": text(made.sender),
            "input": text(made.data),
            "value": hex(made.value),
        }
        if made.to != CREATE_ADDRESS:
            call["to"] = text(made.to)
        if choose.random() < 0.8:
            call["gas"] = hex(choose.choice([made.gas, made.gas, 25_000, 20_000]))
        price = choose.random()
        if price < 0.15:
            call["gasPrice"] = hex(choose.choice([0, 1, 10**10]))
        elif price < 0.3:
            call["maxFeePerGas"] = hex(choose.choice([0, 10**9, 10**11]))
            call["maxPriorityFeePerGas"] = hex(choose.choice([0, 1, 10**9]))
        if made.authorization_list and "gasPrice" not in call and "to" in call:
            call["authorizationList"] = [
                {
                    "chainId": hex(each.chain_id),
                    "address": text(each.address),
                    "nonce": hex(each.nonce),
                    "yParity": hex(each.y_parity),
                    "r": hex(each.r),
                    "s": hex(each.s),
                }
                for each in made.authorization_list
            ]
        return call


def test_random_calls_have_geths_traces(both: Both, live_blocks: int) -> None:
    calls = RandomCalls(SEED, OSAKA, both.transactions)
    kinds: Counter[str] = Counter()
    for _ in range(2 * live_blocks):
        params = calls.params()
        call = Call("", "debug_traceCall", params)
        theirs, _ = expected(
            call, both.geth.call(call.method, params), _NOTHING_RECORDED
        )
        answer = both.api.ask(call.method, *params)
        ours = {name: answer[name] for name in ("result", "error") if name in answer}
        assert ours == theirs, (json.dumps(params), difference(ours, theirs))
        kinds["result" if "result" in theirs else theirs["error"]["message"][:24]] += 1
    print("outcomes:", dict(kinds))
    assert kinds["result"] > live_blocks
