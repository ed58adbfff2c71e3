"""State and traces below the checkpoint, proved by an upstream that keeps old states."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from nodeapi.methods.context import CREDITS_PER_VALUE
from nodeapi.proofs import past_reads
from tests.nodeapi.proofs.pair import CHECKPOINT, FULL, SPARSE, Pair, running_pair
from tests.nodeapi.proofs.test_executions import COUNTER, as_calls
from tests.nodeapi.proofs.test_reads import alter_nodes, places
from tests.support import sample

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with running_pair() as running:
        yield running


def test_reads_equal_those_of_a_complete_network(pair: Pair) -> None:
    accounts, slots = places()
    chosen = random.Random(3)
    blocks: list[Any] = [0, CHECKPOINT - 1, *chosen.sample(range(CHECKPOINT), 6)]
    names = [*map(hex, blocks), "earliest"]
    hashes = [pair.one(FULL, "eth_getBlockByNumber", n, False)["hash"] for n in names]
    names += [{"blockHash": each, "requireCanonical": True} for each in hashes]
    asked: list[tuple[Any, ...]] = []
    for _ in range(120):
        block = chosen.choice(names)
        address, slot = chosen.choice(slots)
        account = chosen.choice(accounts)
        asked.append(
            chosen.choice(
                [
                    ("eth_getBalance", account, block),
                    ("eth_getTransactionCount", account, block),
                    ("eth_getCode", account, block),
                    ("eth_getStorageAt", address, hex(slot), block),
                    ("eth_getStorageValues", {address: [hex(slot)]}, block),
                    ("eth_getProof", address, [hex(slot)], block),
                ]
            )
        )
    pair.agree(*asked)


def test_calls_equal_those_of_a_complete_network(pair: Pair) -> None:
    chosen = random.Random(9)
    calls = as_calls(pair)
    blocks = [hex(number) for number in (1, 30, CHECKPOINT - 9, CHECKPOINT - 1)]
    asked: list[tuple[Any, ...]] = []
    for method in ("eth_call", "eth_estimateGas", "eth_createAccessList"):
        asked += [
            (method, call, chosen.choice(blocks)) for call in chosen.sample(calls, 12)
        ]
    for call in chosen.sample(calls, 4):
        block = chosen.choice(blocks)
        asked += [
            ("debug_traceCall", call, block, {"tracer": "prestateTracer"}),
            ("debug_traceCall", call, block, {"tracer": COUNTER}),
            ("debug_traceCall", call, block, {}),
            ("trace_call", call, ["trace", "stateDiff", "vmTrace"], block),
        ]
    payload = {"blockStateCalls": [{"calls": [calls[0]]}, {"calls": [calls[1]]}]}
    asked.append(("eth_simulateV1", payload, hex(CHECKPOINT - 1)))
    pair.agree(*asked)


TRACERS: list[dict[str, Any]] = [
    *({"tracer": name} for name in ("callTracer", "prestateTracer", "4byteTracer")),
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {"tracer": "muxTracer", "tracerConfig": {"noopTracer": {}, "callTracer": {}}},
    {"tracer": COUNTER},
    {},
]


@pytest.mark.parametrize("names_keys", [True, False])
def test_blocks_are_traced_on_demand(pair: Pair, names_keys: bool) -> None:
    if names_keys:
        method = "debug_traceBlockByHash"
        pair.upstream.server.methods[method] = pair.upstream.node.methods[method]
    numbers = map(hex, range(25, CHECKPOINT + 1))
    blocks = pair.ask(FULL, *(("eth_getBlockByNumber", n, True) for n in numbers))
    found = [
        block["transactions"][-1]
        for block in blocks
        if block["transactions"] and int(block["gasUsed"], 16) < 500_000
    ]
    asked: list[tuple[Any, ...]] = []
    for each in found[:: len(found) // (4 if names_keys else 2)]:
        name, number = each["hash"], each["blockNumber"]
        block = each["blockHash"]
        asked += [
            *(("debug_traceBlockByHash", block, tracer) for tracer in TRACERS),
            *(("debug_traceTransaction", name, tracer) for tracer in TRACERS),
            ("portcullis_getBlockAccessList", number),
            ("trace_block", number),
            ("trace_transaction", name),
            ("trace_replayTransaction", name, ["trace", "stateDiff", "vmTrace"]),
            ("ots_getInternalOperations", name),
            ("portcullis_compareForks", name, None, "cancun"),
            ("debug_traceCall", {"to": each["from"]}, number, {"txIndex": "0x0"}),
        ]
    pair.agree(*asked)
    with connection.cursor() as cursor:
        for table in ("accountversion", "storageversion"):
            cursor.execute(
                f"SELECT FROM nodeapi_{table} v JOIN networks_network n"
                " ON n.id = v.network_id WHERE slug = %s"
                " AND block_number < checkpoint_number",
                [SPARSE],
            )
            assert cursor.fetchone() is None


def test_without_old_states_it_is_pruned(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = hex(CHECKPOINT - 1)
    call = as_calls(pair)[0]
    first = hex(CHECKPOINT + 1)
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (hex(CHECKPOINT), ("eth_getBalance", call["from"], place)),
        (hex(CHECKPOINT), ("eth_getStorageAt", call["from"], "0x0", "earliest")),
        (hex(CHECKPOINT), ("eth_getProof", call["from"], [], place)),
        (hex(CHECKPOINT), ("eth_call", call, place)),
        (first, ("debug_traceBlockByNumber", hex(CHECKPOINT), {})),
        (first, ("portcullis_getBlockAccessList", hex(CHECKPOINT))),
        (first, ("debug_executionWitness", hex(CHECKPOINT))),
    ]
    calls = [each for _, each in asked]

    def is_pruned() -> None:
        errors = pair.ask(SPARSE, *calls)
        for (oldest, call), error in zip(asked, errors, strict=True):
            assert error["code"] == 4444, call
            assert error["data"]["reason"] == "history_pruned", call
            assert error["data"]["oldestBlock"] == oldest, call

    pair.upstream.lowest = CHECKPOINT
    is_pruned()
    count = pair.upstream.server.count("eth_getProof")
    for call in (calls[0], calls[3], calls[4]):
        assert pair.one(SPARSE, *call)["code"] == 4444
    assert pair.upstream.server.count("eth_getProof") == count
    monkeypatch.setattr(past_reads, "PRUNED_SECONDS", 0.0)
    pair.upstream.lowest = 0
    proof = pair.upstream.honest["eth_getProof"]
    methods = pair.upstream.server.methods
    methods["eth_getProof"] = lambda *params: alter_nodes(proof(*params))
    is_pruned()
    methods["eth_getProof"] = proof
    pair.agree(*calls[:-1])


def test_a_value_is_fetched_once_and_for_all_who_wait(pair: Pair) -> None:
    account = as_calls(pair)[0]["from"]
    server, price = pair.upstream.server, CREDITS_PER_VALUE
    first, second = pair.ask_twice("eth_getBalance", account, hex(9))
    assert first == second
    assert pair.context.spent == 1 + price
    pair.one(SPARSE, "eth_getTransactionCount", account, hex(9))
    assert pair.context.spent == 1
    assert server.count("eth_getProof") == 1
    assert len(server.requests) == 1
    scan = [("eth_getStorageAt", account, hex(n), hex(8)) for n in range(60)]
    pair.agree(*scan)
    assert len(server.requests) <= 4


def test_what_needs_blocks_below_the_oldest_one_is_pruned() -> None:
    oldest = 40
    with running_pair(("short", CHECKPOINT, oldest)) as pair:
        check_short(pair, oldest)


def check_short(pair: Pair, oldest: int) -> None:
    stranger = "0x" + "57" * 20

    def hash_of(number: int) -> tuple[Any, ...]:
        code = f"0x60{number:02x}4060005260206000f3"
        return "eth_call", {"to": stranger}, hex(50), {stranger: {"code": code}}

    known = hash_of(oldest)
    assert pair.one("short", *known) == pair.one(FULL, *known)
    for block, *call in (
        (oldest + 256, *hash_of(oldest - 1)),
        (CHECKPOINT + 1, "debug_traceBlockByNumber", hex(oldest), {}),
        (CHECKPOINT + 1, "portcullis_getBlockAccessList", hex(oldest)),
        (oldest, "eth_getBalance", stranger, hex(oldest - 1)),
    ):
        error = pair.one("short", *call)
        assert error["data"]["reason"] == "history_pruned", call
        assert error["data"]["oldestBlock"] == hex(block), call


def test_access_lists_of_proved_blocks_are_those_of_an_upstream() -> None:
    checkpoint = sample.head() - 1  # of Amsterdam
    number = hex(checkpoint)
    calls = [
        ("eth_getBlockAccessList", number),
        ("debug_getRawBlockAccessList", number),
        ("portcullis_getBlockAccessList", number),
    ]
    with running_pair(("late", checkpoint, 1), ("later", checkpoint, 1)) as pair:
        wanted = pair.ask(FULL, *calls)
        server = pair.upstream.server
        server.methods["debug_getRawBlockAccessList"] = lambda *_: wanted[1]
        assert pair.ask("late", *calls) == wanted
        assert not server.count("eth_getProof")
        server.methods["debug_getRawBlockAccessList"] = lambda *_: "0xc0"
        assert pair.ask("later", *calls) == wanted
        assert server.count("eth_getProof")
