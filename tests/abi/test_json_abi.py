"""Uploaded ABIs: what is read, and what is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abi.json_abi import (
    MAX_BYTES,
    MAX_DEFINITIONS,
    MAX_PARAMETERS,
    InvalidAbi,
    read_abi,
)

TRANSFER = {
    "type": "function",
    "name": "transfer",
    "stateMutability": "nonpayable",
    "inputs": [
        {"name": "to", "type": "address", "internalType": "address"},
        {"name": "amount", "type": "uint256"},
    ],
    "outputs": [{"name": "", "type": "bool"}],
}
FILLED = {
    "type": "event",
    "name": "Filled",
    "anonymous": False,
    "inputs": [
        {"name": "maker", "type": "address", "indexed": True},
        {
            "name": "orders",
            "type": "tuple[2][]",
            "components": [
                {"name": "id", "type": "bytes32"},
                {"name": "parts", "type": "uint256[]"},
            ],
        },
    ],
}


def function(name: Any = "f", inputs: Any = ()) -> dict[str, Any]:
    return {"type": "function", "name": name, "inputs": inputs, "outputs": []}


def test_an_abi_is_read() -> None:
    entries = [{"type": "constructor", "inputs": []}, TRANSFER, FILLED, {"type": "receive"}, TRANSFER]  # fmt: skip
    found = read_abi(json.dumps(entries))
    assert [one.line for one in found] == [
        "function transfer(address to, uint256 amount) returns (bool)",
        "event Filled(address indexed maker, (bytes32 id, uint256[] parts)[2][] orders)",
    ]
    assert found[1].signature == "Filled(address,(bytes32,uint256[])[2][])"


def test_an_artifact_of_a_compiler_is_read() -> None:
    artifact = {"contractName": "Token", "abi": [TRANSFER], "bytecode": "0x60"}
    assert read_abi(json.dumps(artifact).encode())[0].name == "transfer"


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"name": "x", "type": "uint256"}
    for _ in range(levels):
        inner = {"name": "t", "type": "tuple", "components": [inner]}
    return inner


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Invalid JSON"),
        ("[" * 100_000, "Invalid JSON"),
        ("1", "JSON array"),
        ('{"abi": {}}', "JSON array"),
        ("[]", "no function"),
        ([1], "Entry 0 is not an object"),
        ([{"type": "wrong", "name": "f"}], "unknown type"),
        ([{"type": ["function"], "name": "f"}], "unknown type"),
        ([function("<script>")], "no valid name"),
        ([function("f" * 101)], "no valid name"),
        ([function(None)], "no valid name"),
        ([function(inputs={})], "not an array"),
        ([function(inputs=[1])], "not an object"),
        ([function(inputs=[{"type": "uint257"}])], "not an ABI type"),
        ([function(inputs=[{"type": 7}])], "no valid type"),
        ([function(inputs=[{"name": "a b", "type": "bool"}])], "no valid name"),
        ([function(inputs=[{"type": "bool[0]"}])], "at least one item"),
        ([function(inputs=[{"type": "tuple", "components": []}])], "at least one member"),
        ([function(inputs=[{"type": "tuple"}])], "not an array"),
        ([function(inputs=[nested(9)])], "levels"),
        ([function(inputs=[{"type": "bool" + "[]" * 9}])], "levels"),
        ([function(inputs=[{"type": "bool"}] * (MAX_PARAMETERS + 1))], "parameters"),
        ([function(f"f{n}") for n in range(MAX_DEFINITIONS + 1)], "1,000 functions"),
        (" " * (MAX_BYTES + 1), "larger than 512 KiB"),
    ],
)  # fmt: skip
def test_what_is_no_abi_is_rejected(content: Any, message: str) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(InvalidAbi, match=message):
        read_abi(text)


def test_the_deepest_type_is_read() -> None:
    assert read_abi(json.dumps([function(inputs=[nested(8)])]))
