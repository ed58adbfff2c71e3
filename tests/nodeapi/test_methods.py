from __future__ import annotations

import asyncio
import platform
import tomllib
from pathlib import Path

import orjson
import pytest
from eth_hash.auto import keccak

from jsonrpc.answers import Reply
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import error_classes
from keys.grants import Grant
from keys.permits import NO_PERMITS
from nodeapi import VERSION
from nodeapi.methods import registry
from nodeapi.methods.context import Context
from nodeapi.schemas import openrpc
from tests.support import edge

ACCOUNT = "0x" + "11" * 20
BLOCK_HASH = "0x" + edge.BLOCK_HASH.hex()
MODULES = [
    *("debug", "erigon", "eth", "net", "ots", "portcullis", "rpc", "trace", "txpool"),
    "web3",
]
UNKNOWN_HASH = "0x" + "12" * 32


def ask(method, *params):
    """Send one call as a body. Return the decoded response."""
    context = Context(
        b"1", Grant(1, "", None, NO_PERMITS, None), edge.HIVE, edge.Store()
    )
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    async def wait():
        return await Dispatcher(registry, Limits(), {}).respond(
            orjson.dumps(body), context
        )

    answer = asyncio.run(wait())
    return orjson.loads(answer.body if isinstance(answer, Reply) else bytes(answer))


def result(method, *params):
    return ask(method, *params)["result"]


def error(method, *params):
    answer = ask(method, *params)["error"]
    return answer["code"], answer["message"]


def word(value):
    return f"0x{value:064x}"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("eth_chainId", "0x101"),
        ("eth_blockNumber", "0x5"),
        ("eth_syncing", False),
        ("net_version", "257"),
        ("net_listening", True),
        ("rpc_modules", dict.fromkeys(MODULES, "1.0")),
    ],
)
def test_first_questions_of_a_client_are_answered(method, expected):
    assert result(method) == expected


def test_version_is_the_projects():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    system = f"{platform.system().lower()}-{platform.machine()}"
    expected = f"Portcullis/v{VERSION}/{system}/python{platform.python_version()}"
    assert result("web3_clientVersion") == expected


def test_data_is_hashed():
    assert result("web3_sha3", "0x68656c6c6f") == "0x" + keccak(b"hello").hex()
    assert result("web3_sha3", "0x") == "0x" + keccak(b"").hex()


def test_block_is_found_by_hash_number_or_tag():
    block = orjson.loads(edge.BLOCK)
    assert result("eth_getBlockByHash", BLOCK_HASH, False) == block
    assert result("eth_getBlockByNumber", "0x5", False) == block


def test_unknown_block_or_transaction_is_null():
    assert result("eth_getBlockByHash", UNKNOWN_HASH, True) is None
    assert result("eth_getBlockByNumber", "0x6", True) is None
    method = "eth_getTransactionByBlockHashAndIndex"
    assert result(method, UNKNOWN_HASH, "0x2") is None
    assert result(method, BLOCK_HASH, "0x3") is None


def test_transaction_is_found_by_block_and_position():
    found = result("eth_getTransactionByBlockHashAndIndex", BLOCK_HASH, "0x2")
    assert found == orjson.loads(edge.TRANSACTION)


@pytest.mark.parametrize("flag", [(), (None,)])
def test_flag_of_a_block_is_required(flag):
    expected = (-32602, "missing value for required argument 1")
    assert error("eth_getBlockByHash", BLOCK_HASH, *flag) == expected


@pytest.mark.parametrize("position", ["0x7", "7", "0x07", word(7), word(7)[2:]])
@pytest.mark.parametrize("block", [(), (None,), ("latest",), ({"blockNumber": "0x5"},)])
def test_storage_is_found_under_its_position(position, block):
    assert result("eth_getStorageAt", ACCOUNT, position, *block) == word(7)


def test_bad_position_has_its_own_error_text():
    expected = (-32602, 'invalid hex in storage key: "0xasdf"')
    assert error("eth_getStorageAt", ACCOUNT, "0xasdf", "latest") == expected


def test_unknown_block_wins_over_a_bad_position():
    expected = (-32000, "header not found")
    assert error("eth_getStorageAt", ACCOUNT, "0xasdf", "0x6") == expected
    assert error("eth_getStorageAt", ACCOUNT, "0x0", "0x6") == expected


def test_many_slots_are_answered_in_their_order():
    other = "0x" + "AA" * 20
    asked = {ACCOUNT: [word(9), word(1), word(9)], other: [word(2)], word(3)[:42]: []}
    assert result("eth_getStorageValues", asked, "latest") == {
        ACCOUNT: [word(9), word(1), word(9)],
        other.lower(): [word(2)],
        word(3)[:42]: [],
    }


def test_many_slots_have_a_limit():
    slots = [word(slot) for slot in range(1024)]
    assert result("eth_getStorageValues", {ACCOUNT: slots}) == {ACCOUNT: slots}
    asked = {ACCOUNT: slots, "0x" + "22" * 20: [word(1)]}
    expected = (-38026, "too many slots (max 1024)")
    assert error("eth_getStorageValues", asked) == expected


@pytest.mark.parametrize("asked", [{}, {ACCOUNT: []}])
def test_no_slots_are_an_error(asked):
    assert error("eth_getStorageValues", asked) == (-32602, "empty request")


def references(value):
    """Yield every `$ref` in a document."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "$ref":
                yield member
            yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def test_document_describes_every_method_and_error():
    document = result("rpc.discover")
    assert document == openrpc.document(registry)
    assert {method["name"] for method in document["methods"]} == {
        method.name for method in registry
    }
    assert set(document["components"]["errors"]) == {
        kind.__name__ for kind in error_classes()
    }
    for reference in references(document):
        found = document
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]
    for method in document["methods"]:
        assert method["summary"].endswith(".")
        assert method["result"]["schema"]
        assert all(param["schema"] for param in method["params"])


def test_document_says_which_state_is_that_at_pending():
    found = 0
    for method in openrpc.document(registry)["methods"]:
        for param in method["params"]:
            summary = param.get("summary", "")
            if summary.startswith("The block after which"):
                assert " pending" in summary, method["name"]
                found += 1
    assert found


def test_document_says_which_parameters_may_be_left_out():
    methods = {m["name"]: m for m in openrpc.document(registry)["methods"]}
    params = methods["eth_getStorageAt"]["params"]
    assert [(p["name"], p["required"]) for p in params] == [
        ("address", True),
        ("storagePosition", True),
        ("block", False),
    ]
