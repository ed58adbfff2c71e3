from __future__ import annotations

import pytest

from evm.transactions import decode_transaction
from wallets.signing.transactions import (
    MAX_DATA_BYTES,
    GasPrices,
    complete,
    from_json,
    read_transaction,
    sign_transaction,
    to_json,
)

KEY = b"F" * 32
SENDER = "0x" + "9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f"
TO = "0x" + "35" * 20
PLAIN = {"from": SENDER, "to": TO}
LONDON = GasPrices(base_fee=10 * 10**9, price=10**9)
FRONTIER = GasPrices(base_fee=None, price=20 * 10**9)


def test_signature_is_that_of_the_standards_example():
    """https://eips.ethereum.org/EIPS/eip-155"""
    wanted = read_transaction(
        {**PLAIN, "value": hex(10**18), "gasPrice": hex(20 * 10**9), "gas": "0x5208"}
    )
    signed = sign_transaction(complete(wanted, FRONTIER, 1, wanted.gas or 0), 9, KEY)
    assert signed.raw.hex() == (
        "f86c098504a817c800825208943535353535353535353535353535353535353535880d"
        "e0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1"
        "590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1"
        "966a3b6d83"
    )


@pytest.mark.parametrize(
    ("more", "prices", "kind", "fee", "tip"),
    [
        ({}, LONDON, 2, 21 * 10**9, 10**9),
        ({}, FRONTIER, 0, 20 * 10**9, 20 * 10**9),
        ({"gasPrice": "0x5"}, LONDON, 0, 5, 5),
        ({"type": "0x0"}, LONDON, 0, 21 * 10**9, 21 * 10**9),
        ({"type": "0x1", "gasPrice": "0x5"}, FRONTIER, 1, 5, 5),
        ({"maxFeePerGas": "0x9"}, LONDON, 2, 9, 9),
        ({"maxPriorityFeePerGas": "0x0"}, LONDON, 2, 20 * 10**9, 0),
        ({"maxFeePerGas": "0x9", "maxPriorityFeePerGas": "0x3"}, LONDON, 2, 9, 3),
        (
            {"gasPrice": "0x5", "accessList": [{"address": TO, "storageKeys": []}]},
            LONDON,
            1,
            5,
            5,
        ),
    ],
)
def test_what_is_left_out_is_filled_in(more, prices, kind, fee, tip):
    transaction = complete(read_transaction({**PLAIN, **more}), prices, 7, 30_000)
    assert from_json(to_json(transaction)) == transaction
    found = decode_transaction(sign_transaction(transaction, 3, KEY).raw)
    assert (found.type, found.chain_id, found.nonce, found.gas) == (kind, 7, 3, 30_000)
    assert (found.max_fee_per_gas, found.max_priority_fee_per_gas) == (fee, tip)
    assert "0x" + found.sender.hex() == SENDER
    assert transaction.max_cost == 30_000 * fee


def test_everything_that_is_given_is_signed():
    slot = "0x" + "07" * 32
    wanted = read_transaction(
        {
            **PLAIN,
            "value": "0x10",
            "input": "0xabcdef",
            "data": "0xabcdef",
            "nonce": "0x2a",
            "gas": "0x10000",
            "chainId": "0x7",
            "maxFeePerGas": "0x9",
            "maxPriorityFeePerGas": "0x3",
            "accessList": [{"address": TO.upper().replace("X", "x"),
                            "storageKeys": [slot]}],
            "unknown": "ignored",
        }
    )  # fmt: skip
    transaction = complete(wanted, LONDON, 7, 65536)
    assert transaction.nonce == 42
    found = decode_transaction(sign_transaction(transaction, 42, KEY).raw)
    assert (found.value, found.data, "0x" + found.to.hex()) == (
        16,
        b"\xab\xcd\xef",
        TO,
    )
    assert found.access_list == ((bytes.fromhex(TO[2:]), (int(slot, 16),)),)


def test_contract_is_created_where_no_recipient_is_named():
    wanted = read_transaction({"from": SENDER, "to": None, "data": "0x6000"})
    found = decode_transaction(
        sign_transaction(complete(wanted, LONDON, 1, 60_000), 0, KEY).raw
    )
    assert (found.to, found.data) == (b"", b"\x60\0")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (5, "expected"),
        ({}, "from"),
        ({"from": "0x12", "to": TO}, "from"),
        ({"from": SENDER}, "to"),
        ({**PLAIN, "to": "vitalik.eth"}, "to"),
        ({**PLAIN, "value": 5}, "value"),
        ({**PLAIN, "value": "5"}, "value"),
        ({**PLAIN, "value": "0x05"}, "value"),
        ({**PLAIN, "value": "-0x5"}, "value"),
        ({**PLAIN, "value": "0x1" + "0" * 64}, "value"),
        ({**PLAIN, "nonce": "0xffffffffffffffff"}, "nonce"),
        ({**PLAIN, "gas": "0x8000000000000000"}, "gas"),
        ({**PLAIN, "gasLimit": "x"}, "gasLimit"),
        ({**PLAIN, "data": "0x1"}, "data"),
        ({**PLAIN, "data": "0x" + "00" * (MAX_DATA_BYTES + 1)}, "data"),
        ({**PLAIN, "data": "0x01", "input": "0x02"}, "input"),
        ({**PLAIN, "type": "0x3"}, "type"),
        ({**PLAIN, "type": "0x4"}, "type"),
        ({**PLAIN, "blobVersionedHashes": []}, "blobVersionedHashes"),
        ({**PLAIN, "authorizationList": []}, "authorizationList"),
        ({**PLAIN, "gasPrice": "0x1", "maxFeePerGas": "0x1"}, "gasPrice"),
        ({**PLAIN, "type": "0x2", "gasPrice": "0x1"}, "gasPrice"),
        ({**PLAIN, "type": "0x1", "maxFeePerGas": "0x1"}, "maxFeePerGas"),
        (
            {**PLAIN, "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"},
            "maxPriorityFeePerGas",
        ),
        ({**PLAIN, "accessList": {}}, "accessList"),
        ({**PLAIN, "accessList": [{"address": TO}]}, "accessList"),
        (
            {**PLAIN, "accessList": [{"address": TO, "storageKeys": ["0x1"]}]},
            "accessList",
        ),
        (
            {**PLAIN, "accessList": [{"address": TO, "storageKeys": []}] * 501},
            "accessList",
        ),
        (
            {
                **PLAIN,
                "type": "0x0",
                "accessList": [{"address": TO, "storageKeys": []}],
            },
            "accessList",
        ),
    ],
)
def test_malformed_transactions_are_refused_with_the_member(given, place):
    with pytest.raises(ValueError, match=rf"^{place}"):
        read_transaction(given)


def test_dynamic_fees_need_a_network_with_a_base_fee():
    with pytest.raises(ValueError, match=r"^maxFeePerGas"):
        complete(
            read_transaction({**PLAIN, "maxFeePerGas": "0x1"}), FRONTIER, 1, 21_000
        )
