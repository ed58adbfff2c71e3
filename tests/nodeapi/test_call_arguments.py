"""Arguments of calls: accepted forms, geth's error texts, and encoding for workers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nodeapi.arguments.calls import (
    decode_block_overrides,
    decode_call,
    decode_state_overrides,
    encode_block_overrides,
    encode_call,
    encode_state_overrides,
)

A, WORD = "0x" + "ab" * 20, "0x" + "00" * 31 + "07"
IN_CALL = "into Go struct field TransactionArgs"
AUTHORIZATION = {
    "chainId": "0x1",
    "address": A,
    "nonce": "0x2",
    "yParity": "0x1",
    "r": "0x3",
    "s": "0x4",
}
CALLS: list[dict[str, Any]] = [
    {},
    {"from": A, "to": A, "input": "0x0102"},
    {"gas": "0x0", "gasPrice": "0x1", "value": "0xff", "nonce": "0x9"},
    {"maxFeePerGas": "0x2", "maxPriorityFeePerGas": "0x1", "chainId": "0x7"},
    {"accessList": [{"address": A, "storageKeys": [WORD]}]},
    {"maxFeePerBlobGas": "0x5", "blobVersionedHashes": [WORD]},
    {"accessList": [], "blobVersionedHashes": [], "authorizationList": []},
    {"authorizationList": [AUTHORIZATION]},
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_survives_the_way_to_a_worker(call: dict[str, Any]) -> None:
    assert encode_call(decode_call(call)) == call


def test_a_sidecar_is_read_but_has_no_effect() -> None:
    sidecar = {
        "blobs": ["0x" + "00" * 2**17],
        "commitments": ["0x" + "c0" * 48],
        "proofs": [],
    }
    assert decode_call(sidecar) == decode_call({})


def test_input_wins_over_data_and_capitals_do_not_matter() -> None:
    assert decode_call({"data": "0x01", "Input": "0x02"}).data == b"\2"
    assert decode_call({"DATA": "0x01", "blob": 5, "type": 1.5}).data == b"\1"
    assert decode_call(None) == decode_call({"to": None})
    assert decode_call({"gas": ""}).gas == 0


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (
            5,
            "json: cannot unmarshal number into Go value of type ethapi.TransactionArgs",
        ),
        ({"to": "0x12"}, "hex string has length 2, want 40 for common.Address"),
        (
            {"gas": "0xg"},
            f"json: cannot unmarshal invalid hex string {IN_CALL}.gas of type "
            "hexutil.Uint64",
        ),
        (
            {"value": 5},
            f"json: cannot unmarshal non-string {IN_CALL}.value of type *hexutil.Big",
        ),
        (
            {"value": "0x1" + "0" * 64},
            f"json: cannot unmarshal hex number > 256 bits {IN_CALL}.value of type "
            "*hexutil.Big",
        ),
        (
            {"nonce": "0x01"},
            "json: cannot unmarshal hex number with leading zero digits "
            f"{IN_CALL}.nonce of type hexutil.Uint64",
        ),
        (
            {"accessList": [{"address": A}]},
            "missing required field 'storageKeys' for AccessTuple",
        ),
        (
            {"accessList": [{"address": 5}]},
            f"json: cannot unmarshal non-string {IN_CALL}.accessList.address of type "
            "common.Address",
        ),
        (
            {"blobs": 5},
            f"json: cannot unmarshal number {IN_CALL}.blobs of type []kzg4844.Blob",
        ),
        (
            {"proofs": ["0x01"]},
            "hex string has length 2, want 96 for kzg4844.Proof",
        ),
        (
            {"authorizationList": [{**AUTHORIZATION, "nonce": None}]},
            "missing required field 'nonce' for SetCodeAuthorization",
        ),
    ],
)
def test_a_malformed_call_has_geths_error_text(value: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        decode_call(value)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {A: {}},
        {A: {"nonce": "0x1", "code": "0x60", "balance": "0x5"}},
        {A: {"state": {WORD: WORD}, "stateDiff": {}}},
        {A: {"movePrecompileToAddress": A}},
    ],
)
def test_overrides_of_the_state_survive_the_way(overrides: dict[str, Any]) -> None:
    found = decode_state_overrides(overrides)
    assert encode_state_overrides(found) == overrides


def test_overrides_of_the_block_survive_the_way() -> None:
    overrides = {
        "Number": "0x5",
        "Time": "0x6",
        "GasLimit": "0x7",
        "FeeRecipient": A,
        "PrevRandao": WORD,
        "BaseFeePerGas": "0x8",
        "BlobBaseFee": "0x9",
        "BeaconRoot": WORD,
        "Withdrawals": [
            {"index": "0x1", "validatorIndex": "0x2", "address": A, "amount": "0x3"}
        ],
    }
    lower = {name[0].lower() + name[1:]: value for name, value in overrides.items()}
    found = decode_block_overrides(lower)
    assert found == decode_block_overrides(overrides)
    assert encode_block_overrides(found) == overrides
