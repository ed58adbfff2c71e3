"""Calls and traces on demand of a sparse network equal those of a complete one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from nodeapi.tracing.answers import SHORT_SECONDS
from tests.nodeapi.proofs.pair import CHECKPOINT, FULL, SPARSE, Pair, running_pair
from tests.support import sample

pytestmark = pytest.mark.django_db(transaction=True)

HEAD = sample.head()
COUNTER = (
    "{count: 0, step: function(log) { this.count++ }, fault: function() {},"
    " result: function(ctx, db) { return [this.count, db.getBalance(ctx.to).toString(),"
    " toHex(db.getState(ctx.to, '0x0000000000000000000000000000000000000000000000000000"
    "0000000ffff'))] }}"
)


@pytest.fixture
def pair(settings: Any) -> Iterator[Pair]:
    # On a busy machine, the limit of 5 s ends some calls on one of the networks.
    settings.NODEAPI_CALL_TIMEOUT = SHORT_SECONDS
    with running_pair() as running:
        yield running


def transactions(pair: Pair, first: int = 1) -> list[dict[str, Any]]:
    """Return the transactions of the chain's blocks from a number on."""
    calls = [
        ("eth_getBlockByNumber", hex(number), True) for number in range(first, HEAD + 1)
    ]
    return [each for block in pair.ask(FULL, *calls) for each in block["transactions"]]


def as_calls(pair: Pair) -> list[dict[str, Any]]:
    """Return the distinct calls that the chain's transactions make."""
    found = {
        (each["from"], each["to"], each["input"], each["value"]): None
        for each in transactions(pair)
    }
    return [
        {"from": sender, "input": data, "value": value} | ({"to": to} if to else {})
        for sender, to, data, value in found
    ]


@pytest.mark.parametrize("names_keys", [True, False])
def test_calls(pair: Pair, names_keys: bool) -> None:
    if names_keys:
        pair.upstream.name_keys()
    chosen = random.Random(7)
    calls = as_calls(pair)
    blocks = [hex(CHECKPOINT), hex(HEAD), "latest", hex(CHECKPOINT + 5)]
    asked: list[tuple[Any, ...]] = []
    for method in ("eth_call", "eth_estimateGas", "eth_createAccessList"):
        asked += [
            (method, call, chosen.choice(blocks)) for call in chosen.sample(calls, 25)
        ]
    for call in chosen.sample(calls, 6):
        block = chosen.choice(blocks)
        asked += [
            (
                "debug_traceCall",
                call,
                block,
                {"tracer": "prestateTracer", "timeout": "60s"},
            ),
            ("debug_traceCall", call, block, {"tracer": COUNTER, "timeout": "60s"}),
            ("debug_traceCall", call, block, {}),
            ("trace_call", call, ["trace", "stateDiff", "vmTrace"], block),
        ]
    pair.agree(*asked)
    assert bool(pair.upstream.server.count("eth_createAccessList"))


def test_a_call_that_reads_many_unknown_slots_takes_three_round_trips(
    pair: Pair,
) -> None:
    pair.upstream.name_keys()
    contract = next(each["to"] for each in as_calls(pair) if len(each["input"]) > 10)
    # Each slot's number depends on the value of the one before.
    read = "".join(f"5461{number:04x}01" for number in range(0x1000, 0x1000 + 200))
    overrides = {contract: {"code": "0x5f" + read + "5f5260205ff3"}}
    call = "eth_call", {"to": contract}, "latest", overrides
    pair.agree(call)
    assert len(pair.upstream.server.requests) <= 3
    assert pair.upstream.server.count("eth_createAccessList") == 1
    pair.agree(call)


def test_calls_with_overrides(pair: Pair) -> None:
    call = next(each for each in as_calls(pair) if len(each["input"]) > 10)
    stranger = "0x" + "57" * 20
    pair.agree(
        ("eth_call", call, "latest", {stranger: {"balance": "0x5"}}),
        ("eth_call", call, "latest", {call["to"]: {"state": {}}}),
        ("eth_call", call, "latest", {call["from"]: {"code": "0x5f545f5260205ff3"}}),
    )


def forget_unchanged() -> None:
    """Delete what was proved and not changed since."""
    with connection.cursor() as cursor:
        for table, columns in (
            ("account", ("address",)),
            ("storage", ("address", "slot")),
        ):
            same = " AND ".join(f"later.{each} = v.{each}" for each in columns)
            cursor.execute(
                f"DELETE FROM nodeapi_{table}version v USING networks_network n"
                " WHERE n.slug = %s AND v.network_id = n.id AND NOT EXISTS ("
                f"SELECT FROM nodeapi_{table}version later WHERE {same}"
                " AND later.network_id = n.id AND later.block_number > %s)",
                [SPARSE, CHECKPOINT],
            )


@pytest.mark.parametrize("is_known", [True, False])
def test_traces_of_executed_blocks(pair: Pair, is_known: bool) -> None:
    if not is_known:
        forget_unchanged()
    asked: list[tuple[Any, ...]] = []
    for each in transactions(pair, CHECKPOINT + 1)[::3]:
        asked += [
            ("debug_traceTransaction", each["hash"], {}),
            (
                "debug_traceTransaction",
                each["hash"],
                {"tracer": COUNTER, "timeout": "60s"},
            ),
            (
                "debug_traceTransaction",
                each["hash"],
                {"tracer": "callTracer", "timeout": "60s"},
            ),
        ]
    pair.agree(*asked)
    assert bool(pair.upstream.server.calls) is not is_known


def test_proofs(pair: Pair) -> None:
    stranger = "0x" + "57" * 20
    contract = next(each["to"] for each in as_calls(pair) if len(each["input"]) > 10)
    asked: list[tuple[Any, ...]] = [
        ("eth_getProof", account, keys, block)
        for account in (contract, stranger)
        for keys in ([], ["0x0", "0x1"], [hex(2**255)])
        for block in (hex(HEAD), hex(CHECKPOINT), hex(HEAD - 9))
    ]
    pair.agree(*asked)
    pair.upstream.lowest = HEAD + 1
    error = pair.one(SPARSE, "eth_getProof", stranger, ["0x7"], hex(CHECKPOINT + 1))
    assert (error["code"], error["data"]["reason"]) == (4444, "no_proof")
    call = "debug_getModifiedAccountsByNumber", CHECKPOINT - 1, HEAD
    error = pair.one(SPARSE, *call)
    assert (error["code"], error["data"]["reason"]) == (4444, "history_pruned")


def forget_nodes(longest: int) -> None:
    """Delete trie nodes with longer paths."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM nodeapi_trienode t USING networks_network n"
            " WHERE n.slug = %s AND t.network_id = n.id AND octet_length(path) > %s",
            [SPARSE, longest],
        )


@pytest.mark.parametrize("longest", [0, 1])
def test_witnesses_and_roots_inside_blocks(pair: Pair, longest: int) -> None:
    forget_nodes(longest)
    asked: list[tuple[Any, ...]] = []
    for number in range(CHECKPOINT + 1, HEAD + 1, 3):
        block = pair.one(FULL, "eth_getBlockByNumber", hex(number), False)
        asked += [
            ("debug_executionWitness", block["hash"]),
            ("debug_intermediateRoots", block["hash"]),
        ]
    pair.upstream.lowest = HEAD + 1
    errors = [one for one in pair.ask(SPARSE, *asked) if "code" in (one or ())]
    assert {error["data"]["reason"] for error in errors} == {"no_proof"}
    pair.upstream.lowest = 0
    pair.agree(*asked)


def test_enumerations_of_slots(pair: Pair) -> None:
    blocks = [each for each in transactions(pair, CHECKPOINT + 1) if each["to"]]
    reasons = set()
    for each in blocks:
        call = "debug_storageRangeAt", each["blockHash"], 0, each["to"], "0x", 9
        found = pair.one(SPARSE, *call)
        if "code" in found:
            assert found["data"]["reason"] == "slots_not_enumerable"
        else:
            assert found == pair.one(FULL, *call)
        reasons.add("code" in found)
    assert reasons == {True, False}


@pytest.mark.parametrize("longest", [0, 64])
def test_simulations(pair: Pair, longest: int) -> None:
    forget_nodes(longest)
    stranger = "0x" + "57" * 20
    calls = [each for each in as_calls(pair) if len(each["input"]) > 10][:3]
    payload = {
        "blockStateCalls": [
            {
                "stateOverrides": {each["from"]: {"balance": hex(10**20)}},
                "calls": [each, {"from": each["from"], "to": stranger, "value": "0x1"}],
            }
            for each in calls
        ]
    }
    asked = [("eth_simulateV1", payload, hex(number)) for number in (HEAD, HEAD - 5)]
    for found in pair.agree(*asked):
        assert [each["number"] for each in found]
