"""The node's interface document, rule by rule, against the live service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from abi.encoding import call_data
from evm.signatures import keccak
from nodeapi.models import StorageVersion
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.sample import sample_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Api, Live

QUANTITY = re.compile(r"0x(0|[1-9a-f][0-9a-f]*)")
BLOCK_QUANTITIES = {
    *("difficulty", "gasLimit", "gasUsed", "number", "size", "timestamp"),
    "totalDifficulty",
}
BLOCK_DATA_BYTES = {
    "hash": 32,
    "logsBloom": 256,
    "miner": 20,
    "mixHash": 32,
    "nonce": 8,
    "parentHash": 32,
    "receiptsRoot": 32,
    "sha3Uncles": 32,
    "stateRoot": 32,
    "transactionsRoot": 32,
}
TRANSACTION_QUANTITIES = {
    *("blockNumber", "gas", "gasPrice", "nonce", "r", "s", "transactionIndex"),
    *("type", "v", "value"),
}
TRANSACTION_DATA_BYTES = {"blockHash": 32, "from": 20, "hash": 32}
UNKNOWN_HASH = "0x" + "5a" * 32


@pytest.fixture(scope="module")
def blocks(api: Api) -> list[dict[str, Any]]:
    head = int(api.result("eth_blockNumber"), 16)
    return api.results(
        ("eth_getBlockByNumber", hex(number), True) for number in range(head + 1)
    )


def is_quantity(value: Any) -> bool:
    return isinstance(value, str) and QUANTITY.fullmatch(value) is not None


def is_data(value: Any, size: int) -> bool:
    return isinstance(value, str) and bool(
        re.fullmatch(rf"0x[0-9a-f]{{{2 * size}}}", value)
    )


# The envelope


@pytest.mark.parametrize("request_id", [0, 1, 83, -5, 2**53, 2**64 + 1])
def test_answer_is_an_envelope_with_the_id_of_the_request(
    api: Api, request_id: int
) -> None:
    response = api.send(
        {"jsonrpc": "2.0", "method": "eth_chainId", "params": [], "id": request_id}
    )
    assert response.status_code == 200
    assert response.json() == {"jsonrpc": "2.0", "id": request_id, "result": "0x31773"}


@pytest.mark.parametrize("version", ["1.0", 2.0, None])
def test_other_versions_of_the_protocol_are_refused(api: Api, version: Any) -> None:
    message = {"jsonrpc": version, "method": "eth_chainId", "params": [], "id": 4}
    error = api.send(message).json()["error"]
    assert error == {"code": -32600, "message": "invalid request"}


def test_parameters_are_an_array(api: Api) -> None:
    message = {"jsonrpc": "2.0", "method": "eth_chainId", "params": {"a": 1}, "id": 4}
    error = api.send(message).json()["error"]
    assert error == {"code": -32602, "message": "non-array args"}


def test_key_stands_in_the_path_behind_the_version(live: Live) -> None:
    key = live.new_key()
    for path, status in (
        (f"/sample/v3/{key}", 200),
        (f"/v3/{key}", 200),
        ("/sample/v3/", 401),
        (f"/sample/v2/{key}", 404),
        (f"/sample/{key}", 404),
    ):
        with Api(live.base_url, path) as api:
            message = {"jsonrpc": "2.0", "method": "eth_chainId", "id": 1}
            assert api.send(message).status_code == status, path


# Blocks


def test_every_documented_field_of_every_block(blocks: list[dict[str, Any]]) -> None:
    for block in blocks:
        assert all(is_quantity(block[name]) for name in BLOCK_QUANTITIES), block
        assert all(is_data(block[n], size) for n, size in BLOCK_DATA_BYTES.items())
        assert re.fullmatch(r"0x([0-9a-f]{2}){0,32}", block["extraData"])
        assert all(is_data(uncle, 32) for uncle in block["uncles"])
        assert isinstance(block["transactions"], list)
    assert any(block["uncles"] for block in blocks)


def test_total_difficulty_is_the_sum_up_to_the_block(
    blocks: list[dict[str, Any]],
) -> None:
    total = 0
    for block in blocks:
        total += int(block["difficulty"], 16)
        assert int(block["totalDifficulty"], 16) == total
    assert block["difficulty"] == "0x0"


def test_flag_chooses_between_objects_and_hashes(
    api: Api, blocks: list[dict[str, Any]]
) -> None:
    for block in blocks:
        assert api.result("eth_getBlockByHash", block["hash"], True) == block
        short = api.result("eth_getBlockByHash", block["hash"], False)
        hashes = [transaction["hash"] for transaction in block["transactions"]]
        assert short == {**block, "transactions": hashes}
        assert all(is_data(each, 32) for each in hashes)


def test_unknown_block_is_null(api: Api) -> None:
    for flag in (True, False):
        assert api.result("eth_getBlockByHash", UNKNOWN_HASH, flag) is None


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ([], "missing value for required argument 0"),
        ([UNKNOWN_HASH], "missing value for required argument 1"),
        ([UNKNOWN_HASH, True, 1], "too many arguments, want at most 2"),
        (
            [UNKNOWN_HASH, "true"],
            "invalid argument 1: json: cannot unmarshal string into Go value of type bool",
        ),
        (
            ["0x5a", True],
            "invalid argument 0: hex string has length 2, want 64 for common.Hash",
        ),
    ],
)
def test_both_parameters_of_a_block_are_required(
    api: Api, params: list[Any], complaint: str
) -> None:
    assert api.error("eth_getBlockByHash", *params) == (-32602, complaint)


# Transactions


def test_every_documented_field_of_every_transaction(
    blocks: list[dict[str, Any]],
) -> None:
    seen = set()
    for block in blocks:
        for found in block["transactions"]:
            assert all(is_quantity(found[name]) for name in TRANSACTION_QUANTITIES)
            assert all(
                is_data(found[n], size) for n, size in TRANSACTION_DATA_BYTES.items()
            )
            assert re.fullmatch(r"0x([0-9a-f]{2})*", found["input"])
            assert found["to"] is None or is_data(found["to"], 20)
            kind = int(found["type"], 16)
            assert ("accessList" in found) is (kind >= 1)
            fees = {"maxFeePerGas", "maxPriorityFeePerGas"}
            assert fees & found.keys() == (fees if kind >= 2 else set())
            assert kind == 0 or found["chainId"] == "0x31773"
            for entry in found.get("accessList", ()):
                assert is_data(entry["address"], 20)
                assert all(is_data(key, 32) for key in entry["storageKeys"])
            seen.add((kind, found["to"] is None))
    assert {kind for kind, _ in seen} == {0, 1, 2, 3, 4}
    assert (0, True) in seen


def test_transaction_by_position(api: Api, blocks: list[dict[str, Any]]) -> None:
    for block in blocks:
        count = len(block["transactions"])
        found = api.results(
            ("eth_getTransactionByBlockHashAndIndex", block["hash"], hex(index))
            for index in range(count + 2)
        )
        assert found == [*block["transactions"], None, None]


def test_transaction_of_an_unknown_block_is_null(api: Api) -> None:
    method = "eth_getTransactionByBlockHashAndIndex"
    assert api.result(method, UNKNOWN_HASH, "0x0") is None
    assert api.result(method, UNKNOWN_HASH, "0xffffffff") is None


# Storage


def test_plain_variable_is_addressed_by_its_slot(api: Api) -> None:
    row = (
        StorageVersion.objects.exclude(value=b"")
        .filter(slot=bytes(32))
        .order_by("-block_number")
        .first()
    )
    assert row is not None
    address = "0x" + bytes(row.address).hex()
    value = "0x" + bytes(row.value).rjust(32, b"\0").hex()
    for position in ("0x0", "0x", "0x00", "0x" + "00" * 32, "0", ""):
        found = api.result("eth_getStorageAt", address, position, hex(row.block_number))
        assert found == value


def test_element_of_a_mapping_stands_at_the_hash_of_key_and_position(
    live: Live,
) -> None:
    start = sample_genesis()
    start["config"]["chainId"] = 77
    owner, holder = Signer("alice"), Signer("holder")
    chain = ChainBuilder(start)
    token = chain.deploy(owner, contract("token").init_code((1_000_000).to_bytes(32)))
    chain.block()
    chain.send(
        owner, token, call_data("transfer(address,uint256)", holder.address, 4096)
    )
    chain.block()
    chains.import_blocks("mapping", start, chain.blocks)
    [position] = {
        slot
        for slot in range(8)
        if (mapping_element(holder.address, slot), 4096) in stored("mapping")
    }
    with live.api("mapping") as api:
        for who, before, after in (
            (holder.address, 0, 4096),
            (owner.address, 1_000_000, 1_000_000 - 4096),
            (Signer("nobody").address, 0, 0),
        ):
            element = "0x" + mapping_element(who, position).hex()
            where = ("eth_getStorageAt", "0x" + token.hex(), element)
            assert api.result(*where, "0x1") == f"0x{before:064x}"
            assert api.result(*where, "0x2") == f"0x{after:064x}"
            assert api.result(*where, "latest") == f"0x{after:064x}"
            assert api.result(*where, "earliest") == f"0x{0:064x}"


def mapping_element(key: bytes, position: int) -> bytes:
    return keccak(key.rjust(32, b"\0") + position.to_bytes(32))


def stored(slug: str) -> set[tuple[bytes, int]]:
    """Return every slot of a network that has a row, with its value there."""
    rows = StorageVersion.objects.filter(network__slug=slug)
    return {(bytes(row.slot), int.from_bytes(bytes(row.value))) for row in rows}


@pytest.mark.parametrize("tag", ["latest", "earliest", "pending", "safe", "finalized"])
def test_every_tag_names_a_block(api: Api, tag: str) -> None:
    assert is_data(api.result("eth_getStorageAt", "0x" + "12" * 20, "0x0", tag), 32)


@pytest.mark.parametrize("tag", ["Latest", "newest", "latest "])
def test_no_other_word_names_a_block(api: Api, tag: str) -> None:
    found = api.error("eth_getStorageAt", "0x" + "12" * 20, "0x0", tag)
    assert found == (-32602, "invalid argument 2: hex string without 0x prefix")


def test_first_two_parameters_of_storage_are_required(api: Api) -> None:
    method, address = "eth_getStorageAt", "0x" + "12" * 20
    for params, number in (([], 0), ([address], 1)):
        text = f"missing value for required argument {number}"
        assert api.error(method, *params) == (-32602, text)


def frames(frame: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a call frame and all below it."""
    yield frame
    for call in frame.get("calls", []):
        yield from frames(call)


def test_traces_are_for_a_select_set_of_customers(
    live: Live, blocks: list[dict[str, Any]]
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "debug_traceBlockByHash"}
    with live.api("sample") as api:
        answer = api.send({**message, "params": [blocks[-1]["hash"]]})
    assert answer.status_code == 403
    assert "the provider's support about custom plans" in answer.text


def test_call_traces_are_one_entry_for_each_transaction_of_a_block(
    api: Api, blocks: list[dict[str, Any]]
) -> None:
    kinds = set()
    for block in blocks[1:]:
        options = {"tracer": "callTracer"}
        entries = api.result("debug_traceBlockByHash", block["hash"], options)
        assert len(entries) == len(block["transactions"])
        for entry, transaction in zip(entries, block["transactions"], strict=True):
            top = entry["result"]
            assert (top["from"], top["input"], top["value"], top["gas"]) == (
                *(transaction["from"], transaction["input"]),
                *(transaction["value"], transaction["gas"]),
            )
            assert transaction["to"] in (None, top.get("to"))
            for frame in frames(top):
                kinds.add(frame["type"])
                assert is_data(frame["from"], 20)
                assert is_quantity(frame["gas"])
                assert is_quantity(frame["gasUsed"])
                assert re.fullmatch("0x([0-9a-f]{2})*", frame["input"])
    assert kinds >= {"CALL", "DELEGATECALL"}


def test_only_the_top_call_is_traced_on_request(
    api: Api, blocks: list[dict[str, Any]]
) -> None:
    nested = 0
    for block in blocks[1:]:
        whole, tops = (
            api.result(
                "debug_traceBlockByHash",
                block["hash"],
                {"tracer": "callTracer", "tracerConfig": config},
            )
            for config in ({}, {"onlyTopCall": True})
        )
        nested += sum("calls" in entry["result"] for entry in whole)
        for entry in whole:
            entry["result"].pop("calls", None)
        assert tops == whole
    assert nested > 0


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ([{"tracer": "prestateTracer"}], dict),
        ([{"tracer": "flatCallTracer"}], list),
        ([{"tracer": "{result: function() { return 7 }, fault: function() {}}"}], int),
        ([{}], dict),
        ([], dict),
    ],
)
def test_other_tracers_and_none(
    api: Api, blocks: list[dict[str, Any]], options: list[Any], kind: type
) -> None:
    block = blocks[1]
    entries = api.result("debug_traceBlockByHash", block["hash"], *options)
    assert len(entries) == len(block["transactions"])
    assert {type(entry["result"]) for entry in entries} == {kind}
