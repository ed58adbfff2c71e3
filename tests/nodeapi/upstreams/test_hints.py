"""Accounts and slots that upstreams name, of which only verified lists are trusted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import orjson
import pytest
from eth_typing import Address

from evm import rlp
from evm.proved_state import Keys
from evm.rlp import Item
from evm.signatures import keccak
from nodeapi.documents.access_lists import access_list_document
from nodeapi.upstreams import hints
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UnusableAnswer,
    UpstreamError,
    UpstreamUnavailable,
)
from tests.support.coroutines import scenario
from tests.support.state_node import LocalClient
from tests.support.upstream_server import UpstreamServer, hold, refuse
from tests.support.waiting import in_time

ALICE, BOB, CAROL = (Address(bytes([n]) * 20) for n in (0xA1, 0xB0, 0xCA))
BLOCK_HASH = keccak(b"block")
LIMIT = 10
BIG = 2**255 + 3

RAW = rlp.encode(
    [
        [ALICE, [], [], [[b"\x01", b"\x09"]], [[b"\x01", b"\x02"]], []],
        [
            BOB,
            [[b"\x05", [[b"\x01", b""], [b"\x02", b"\xff" * 32]]]],
            [b"", rlp.encode_int(BIG)],
            *([], [], [[b"\x02", b"\x60\x00"]]),
        ],
    ]
)
DOCUMENT = orjson.loads(access_list_document(RAW))
LISTED = Keys({ALICE, BOB}, {(BOB, 5), (BOB, 0), (BOB, BIG)})
RAW_LIST = "debug_getRawBlockAccessList"
JSON_LIST = "eth_getBlockAccessList"
OWN_LIST = "portcullis_getBlockAccessList"
TRUE_LISTS: dict[str, Any] = {
    RAW_LIST: f"0x{RAW.hex()}",
    JSON_LIST: DOCUMENT,
    OWN_LIST: {"computed": False, "list": DOCUMENT, "hash": f"0x{keccak(RAW).hex()}"},
}
WRONG: list[Any] = [
    *(7, True, "", "0x", "zz", {}, [7], [[]], [{}], [{"address": "0x12"}]),
    *({"list": 7}, {"list": [{}]}, {"list": [DOCUMENT]}, DOCUMENT[:1], [None]),
    *([DOCUMENT[0] | {"storageReads": ["0x" + "1" * 65]}], {"accessList": 7}),
    *({"accessList": [7]}, [{"result": 7}], [{"result": {"0x12": {}}}], [[[[[[[]]]]]]]),
    *([{"result": {"0x" + "12" * 20: 7}}], {"accessList": [{"address": "0x"}]}),
    [{"result": {"0x" + "12" * 20: {"storage": {"zz": "0x0"}}}}],
]


def read(node: UpstreamServer, work: Callable[[UpstreamClient], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        async with UpstreamClient(node.http_url) as client:
            return await in_time(work(client))

    return asyncio.run(scenario())


def listed(node: UpstreamServer, list_hash: bytes | None, limit: int = LIMIT) -> Keys:
    found: Keys = read(
        node, lambda it: hints.listed_keys(it, BLOCK_HASH, list_hash, limit)
    )
    return found


def methods_of(node: UpstreamServer) -> list[str]:
    return [method for method, _ in node.calls]


@pytest.mark.parametrize("method", TRUE_LISTS)
def test_a_list_is_read_in_each_form(server: UpstreamServer, method: str) -> None:
    server.methods[method] = TRUE_LISTS[method]
    assert listed(server, keccak(RAW)) == LISTED
    assert methods_of(server) == list(TRUE_LISTS)[: 1 + list(TRUE_LISTS).index(method)]
    assert all(params == [f"0x{BLOCK_HASH.hex()}"] for _, params in server.calls)


def test_before_amsterdam_only_our_own_node_has_lists(server: UpstreamServer) -> None:
    server.methods |= TRUE_LISTS
    assert listed(server, None) == LISTED
    assert methods_of(server) == [OWN_LIST]


def test_a_list_with_another_hash_is_dropped(server: UpstreamServer) -> None:
    server.methods |= {RAW_LIST: "0xc0", JSON_LIST: DOCUMENT[:1]}
    with pytest.raises(UnusableAnswer, match=f"{RAW_LIST} does not have the header's"):
        listed(server, keccak(RAW))
    server.methods[OWN_LIST] = TRUE_LISTS[OWN_LIST]
    assert listed(server, keccak(RAW)) == LISTED
    for wrong in (changed(DOCUMENT, seed) for seed in range(20)):
        server.methods |= {JSON_LIST: wrong, OWN_LIST: {"list": wrong}}
        with pytest.raises(UnusableAnswer):
            listed(server, keccak(RAW))


def changed(document: list[Any], seed: int) -> Any:
    """Return a list with a digit changed, or without an item of a list."""
    chance = random.Random(seed)
    text = orjson.dumps(document)
    while True:
        at = chance.randrange(len(text))
        digit = chance.choice(b"123456789abcdef")
        if text[at - 1 : at] != b"0" and text[at : at + 1] in b"123456789":
            found = orjson.loads(text[:at] + bytes([digit]) + text[at + 1 :])
            if found != document:
                return found


@pytest.mark.parametrize(
    "shape",
    [
        b"\x05",
        [b"\x05"],
        [b"abcdef"],
        [[]],
        [[ALICE, [], []], [ALICE[:5], [], [], [], [], []]],
        [[ALICE, [], [b"\x01" * 33], [], [], []]],
        [[ALICE, [[]], [], [], [], []]],
        [[ALICE, [b"ab"], [], [], [], []]],
        [[ALICE, [], b"cd", [], [], []]],
        [[ALICE, [[[[]], []]], [], [], [], []]],
        [[[ALICE], b"", b"", b"", b"", b""]],
    ],
)
def test_a_list_of_a_false_header_is_unusable(
    server: UpstreamServer, shape: Item
) -> None:
    """A header may name the hash of anything. Its block is invalid."""
    raw = rlp.encode(shape)
    server.methods[RAW_LIST] = f"0x{raw.hex()}"
    with pytest.raises(UnusableAnswer, match="is malformed"):
        listed(server, keccak(raw))


def test_too_many_keys_are_refused(server: UpstreamServer) -> None:
    server.methods |= TRUE_LISTS
    assert listed(server, keccak(RAW), len(LISTED)) == LISTED
    with pytest.raises(UnusableAnswer, match="has 5 accounts and slots, not 4"):
        listed(server, keccak(RAW), len(LISTED) - 1)
    assert hints.most_keys(30_000_000) > 30_000_000 // 1900 + 500


def test_no_list_is_offered(server: UpstreamServer) -> None:
    async def twice(client: UpstreamClient) -> None:
        for _ in range(2):
            with pytest.raises(MethodUnavailable):
                await hints.listed_keys(client, BLOCK_HASH, keccak(RAW), LIMIT)

    read(server, twice)
    assert methods_of(server) == list(TRUE_LISTS)
    server.methods[JSON_LIST] = refuse(-32000, "the block is unknown")
    with pytest.raises(UpstreamError, match="the block is unknown"):
        listed(server, keccak(RAW))


def test_traces_name_accounts_and_slots(server: UpstreamServer) -> None:
    server.methods["debug_traceBlockByHash"] = [
        {"result": {f"0x{ALICE.hex()}": {"balance": "0x1"}}},
        {"error": "execution timeout"},
        {
            "result": {
                f"0x{BOB.hex()}": {
                    "storage": {f"0x{5:064x}": "0x1", f"0x{BIG:064x}": "0x1"}
                }
            }
        },
    ]
    found = read(server, lambda it: hints.prestate_keys(it, BLOCK_HASH, LIMIT))
    assert found == Keys({ALICE, BOB}, {(BOB, 5), (BOB, BIG)})
    [(_, params)] = server.calls
    options = {
        "tracer": "prestateTracer",
        "tracerConfig": {"disableCode": True, "includeEmpty": True},
    }
    assert params == [f"0x{BLOCK_HASH.hex()}", options]
    with pytest.raises(UnusableAnswer, match="accounts and slots, not 3"):
        read(server, lambda it: hints.prestate_keys(it, BLOCK_HASH, 3))


def test_calls_name_accounts_and_slots(server: UpstreamServer) -> None:
    server.methods["eth_createAccessList"] = {
        "accessList": [
            {"address": f"0x{BOB.hex()}", "storageKeys": [f"0x{5:064x}"]},
            {"address": f"0x{CAROL.hex()}", "storageKeys": None},
        ],
        "error": "execution reverted",
        "gasUsed": "0x5208",
    }
    call = {"from": f"0x{ALICE.hex()}", "to": f"0x{BOB.hex()}", "data": "0x12"}
    found = read(server, lambda it: hints.call_keys(it, call, BLOCK_HASH, LIMIT, {}))
    assert found == Keys({ALICE, BOB, CAROL}, {(BOB, 5)})
    [(_, params)] = server.calls
    assert params == [call, {"blockHash": f"0x{BLOCK_HASH.hex()}"}, {}]


def test_wrong_types_are_unusable(server: UpstreamServer) -> None:
    async def scenario(client: UpstreamClient) -> None:
        for wrong in WRONG:
            for method in (
                *TRUE_LISTS,
                "debug_traceBlockByHash",
                "eth_createAccessList",
            ):
                server.methods[method] = wrong
            for work in (
                hints.listed_keys(client, BLOCK_HASH, keccak(RAW), LIMIT),
                hints.listed_keys(client, BLOCK_HASH, None, LIMIT),
                hints.prestate_keys(client, BLOCK_HASH, LIMIT),
                hints.call_keys(client, {"to": 7}, BLOCK_HASH, LIMIT),
            ):
                try:
                    found = await work
                except UpstreamUnavailable:
                    continue
                # Traces whose transactions have errors name nothing.
                assert found == Keys()
                assert isinstance(wrong, list)

    read(server, scenario)


@scenario
async def test_a_late_hint_is_not_asked_for_again_for_some_minutes(
    server: UpstreamServer,
) -> None:
    server.fault = hold
    async with UpstreamClient(server.url("http"), timeout=0.2) as client:
        with pytest.raises(UpstreamUnavailable):
            await hints.prestate_keys(client, BLOCK_HASH, LIMIT)
        with pytest.raises(MethodUnavailable):
            await hints.prestate_keys(client, BLOCK_HASH, LIMIT)
    assert server.count("debug_traceBlockByHash") == 1


WRONG_VALUES: list[Any] = [None, 7, -1, 1.5, 2**63, True, "", "0x", "zz", [], {}, [[]]]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place in a JSON value: a list or an object, and an index or a name."""
    for at in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, at
        if isinstance(value[at], dict | list):
            yield from places(value[at])


def test_wrong_types_in_every_place_name_only_keys() -> None:
    """Of lists, traces and answers to calls, with 12 wrong values in each place."""
    trace = {f"0x{BOB.hex()}": {"balance": "0x1", "storage": {f"0x{5:064x}": "0x1"}}}
    sent: dict[str, Any] = {
        JSON_LIST: DOCUMENT,
        OWN_LIST: TRUE_LISTS[OWN_LIST],
        "debug_traceBlockByHash": [{"txHash": "0x1", "result": trace}, {"error": "e"}],
        "eth_createAccessList": {
            "accessList": [{"address": f"0x{BOB.hex()}", "storageKeys": ["0x5"]}]
        },
    }
    call = {"from": f"0x{ALICE.hex()}"}
    ask: dict[str, Callable[[UpstreamClient], Awaitable[Keys]]] = {
        JSON_LIST: lambda it: hints.listed_keys(it, BLOCK_HASH, keccak(RAW), LIMIT),
        OWN_LIST: lambda it: hints.listed_keys(it, BLOCK_HASH, None, LIMIT),
        "debug_traceBlockByHash": lambda it: hints.prestate_keys(it, BLOCK_HASH, LIMIT),
        "eth_createAccessList": lambda it: hints.call_keys(it, call, BLOCK_HASH, LIMIT),
    }

    async def scenario() -> tuple[int, int]:
        named = refused = 0
        for method, true in sent.items():
            holder = orjson.loads(orjson.dumps([true]))
            client = LocalClient({method: lambda *_, it=holder: it[0]})
            for inside, at in list(places(holder)):
                right = inside[at]
                for wrong in WRONG_VALUES:
                    inside[at] = wrong
                    try:
                        found = await ask[method](client)
                    except (UpstreamError, UpstreamUnavailable):
                        refused += 1
                        continue
                    named += 1
                    assert all(len(address) == 20 for address in found.accounts)
                    assert all(0 <= slot < 2**256 for _, slot in found.slots)
                inside[at] = right
        return named, refused

    named, refused = asyncio.run(scenario())
    assert named > 50
    assert refused > 500
