"""Transactions of all types. EIP-155's example, and others signed by eth-account."""

import dataclasses

import pytest
from eth_account import Account
from eth_utils.exceptions import ValidationError

from evm import rlp, transactions
from evm.rlp import RlpError
from evm.signatures import CURVE_ORDER, address_of_key, keccak
from evm.signing import encode_unsigned, sign_authorization, sign_transaction
from evm.transactions import (
    CREATE_ADDRESS,
    decode_transaction,
    recover_senders,
)

KEY = b"\x46" * 32
SENDER = address_of_key(KEY)
TO = b"\x35" * 20
SLOTS = (1, 2**256 - 1)
BLOB_HASH = b"\x01" + b"\xaa" * 31

FIELDS = {
    "legacy": {"nonce": 9, "gas": 21_000, "gas_price": 20 * 10**9, "to": TO},
    "protected": {
        "nonce": 9,
        "gas": 21_000,
        "gas_price": 20 * 10**9,
        "to": TO,
        "value": 10**18,
        "chain_id": 1,
    },
    "creation": {"nonce": 0, "gas": 90_000, "data": b"\x00" * 60, "chain_id": 2**40},
    "access list": {
        "type": 1,
        "chain_id": 7,
        "nonce": 0,
        "gas": 30_000,
        "gas_price": 5,
        "to": TO,
        "access_list": ((TO, SLOTS), (SENDER, ())),
    },
    "dynamic fee": {
        "type": 2,
        "chain_id": 7,
        "nonce": 2**63,
        "gas": 30_000,
        "max_fee_per_gas": 7,
        "max_priority_fee_per_gas": 2,
        "to": TO,
        "data": b"hello",
    },
    "blob": {
        "type": 3,
        "chain_id": 7,
        "nonce": 1,
        "gas": 30_000,
        "max_fee_per_gas": 7,
        "to": TO,
        "max_fee_per_blob_gas": 11,
        "blob_versioned_hashes": (BLOB_HASH, BLOB_HASH),
    },
    "set code": {
        "type": 4,
        "chain_id": 7,
        "nonce": 1,
        "gas": 90_000,
        "max_fee_per_gas": 7,
        "to": TO,
        "authorization_list": (sign_authorization(0, TO, 5, b"\x01" * 32),),
    },
}


def changed(transaction, place, item):
    """Return a transaction's bytes with another item at a place of its list."""
    prefix = transaction.raw[:1] if transaction.type else b""
    items = rlp.decode(transaction.raw[len(prefix) :])
    items[place] = item
    return prefix + rlp.encode(items)


@pytest.mark.parametrize("name", FIELDS)
def test_unsigned_encoding_differs_in_its_signature_only(name):
    fields = FIELDS[name]
    signed, prefix = sign_transaction(fields, KEY).raw, bytes((fields.get("type", 0),))
    if prefix == b"\0":
        prefix = b""
    items = rlp.decode(signed[len(prefix) :])
    items[-3:] = [b"", b"", b""]
    assert encode_unsigned(fields) == prefix + rlp.encode(items)


@pytest.mark.parametrize("name", FIELDS)
def test_what_was_signed_is_read_back(name):
    fields = FIELDS[name]
    transaction = sign_transaction(fields, KEY)
    for field, value in fields.items():
        if field == "gas_price":
            assert transaction.max_fee_per_gas == value
            assert transaction.max_priority_fee_per_gas == value
        else:
            assert getattr(transaction, field) == value
    assert transaction.to == fields.get("to", CREATE_ADDRESS)
    assert transaction.sender == SENDER
    assert transaction.hash == keccak(transaction.raw)
    assert transaction.blob_gas == 131_072 * len(
        fields.get("blob_versioned_hashes", ())
    )


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "creation"])
def test_signatures_are_those_of_eth_account(name):
    names = {
        "gas_price": "gasPrice",
        "max_fee_per_gas": "maxFeePerGas",
        "max_priority_fee_per_gas": "maxPriorityFeePerGas",
        "chain_id": "chainId",
        "max_fee_per_blob_gas": "maxFeePerBlobGas",
        "blob_versioned_hashes": "blobVersionedHashes",
        "access_list": "accessList",
        "authorization_list": "authorizationList",
    }
    fields = {names.get(key, key): value for key, value in FIELDS[name].items()}
    if "type" in fields and fields["type"] > 1:
        fields.setdefault("maxPriorityFeePerGas", 0)
    fields.setdefault("value", 0)
    if "accessList" in fields:
        fields["accessList"] = [
            {
                "address": "0x" + address.hex(),
                "storageKeys": [f"0x{slot:064x}" for slot in slots],
            }
            for address, slots in fields["accessList"]
        ]
    if "authorizationList" in fields:
        fields["authorizationList"] = [
            {
                "chainId": authorization.chain_id,
                "address": authorization.address,
                "nonce": authorization.nonce,
                "yParity": authorization.y_parity,
                "r": authorization.r,
                "s": authorization.s,
            }
            for authorization in fields["authorizationList"]
        ]
    signed = Account.sign_transaction(fields, KEY)
    transaction = sign_transaction(FIELDS[name], KEY)
    assert transaction.raw == bytes(signed.raw_transaction)
    assert transaction.hash == bytes(signed.hash)


def test_replay_protection_is_that_of_the_eip():
    transaction = sign_transaction(FIELDS["protected"], KEY)
    assert transaction.signing_hash().hex() == (
        "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"
    )
    assert transaction.v == 37
    assert transaction.r == int(
        "18515461264373351373200002665853028612451056578545711640558177340181847433846"
    )
    assert transaction.chain_id == 1
    assert sign_transaction(FIELDS["legacy"], KEY).chain_id is None


def test_senders_are_recovered_ahead_and_bad_signatures_left_alone(monkeypatch):
    good = sign_transaction(FIELDS["blob"], KEY)
    # No point of the curve has this x coordinate.
    bad = decode_transaction(changed(good, -2, b"\x05"))
    recover_senders([bad, good])
    with monkeypatch.context() as patch:
        patch.delattr(transactions, "recover_address")
        assert good.sender == SENDER
    with pytest.raises(ValidationError, match="signature of no key"):
        _ = bad.sender


def test_authority_is_the_signer():
    authorization = FIELDS["set code"]["authorization_list"][0]
    assert authorization.authority() == address_of_key(b"\x01" * 32)
    authorization.validate(7)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"chain_id": 8}, "for chain 8"),
        ({"nonce": 2**64 - 1}, "nonce"),
        ({"s": CURVE_ORDER // 2 + 1}, "high s"),
    ],
)
def test_authorization_that_is_void_says_why(change, reason):
    authorization = sign_authorization(7, TO, 5, KEY)
    with pytest.raises(ValidationError, match=reason):
        dataclasses.replace(authorization, **change).validate(7)


@pytest.mark.parametrize(
    "change", [{"y_parity": 2}, {"y_parity": 27}, {"r": 0}, {"s": CURVE_ORDER}]
)
def test_authorization_without_a_signature_has_no_authority(change):
    authorization = sign_authorization(7, TO, 5, KEY)
    with pytest.raises(ValidationError, match="out of range"):
        dataclasses.replace(authorization, **change).authority()


@pytest.mark.parametrize(
    ("name", "place", "item", "reason"),
    [
        ("legacy", 0, b"\x00", "leading zeros"),
        ("legacy", 0, b"\x01" * 9, "at most 8"),
        ("legacy", 1, b"\x01" * 33, "at most 32"),
        ("legacy", 2, b"\x01" * 9, "at most 8"),
        ("legacy", 3, b"\x01" * 19, "expected 20 bytes, found 19"),
        ("legacy", 3, [], "expected 20 bytes, found a list"),
        ("legacy", 4, [], "expected an integer, found a list"),
        ("legacy", 5, [b""], "expected data, found a list"),
        ("legacy", 6, b"\x1a", "signature v is 26"),
        ("legacy", 6, b"\x1d", "signature v is 29"),
        ("legacy", 6, b"", "signature v is 0"),
        ("legacy", 7, b"", "out of range"),
        ("legacy", 8, rlp.encode_int(CURVE_ORDER), "out of range"),
        ("access list", 7, b"", "expected a list, found a string"),
        ("access list", 7, [[TO]], "an address and a list"),
        ("access list", 7, [b"ab"], "an address and a list"),
        ("access list", 7, [[TO, [b"\x01"]]], "expected 32 bytes, found 1"),
        ("access list", 7, [[TO, b""]], "expected a list, found a string"),
        ("dynamic fee", 9, b"\x02", "y parity is 2"),
        ("dynamic fee", 10, b"", "out of range"),
        ("blob", 5, b"", "can't create"),
        ("blob", 10, [b"\x01"], "expected 32 bytes, found 1"),
        ("blob", 10, BLOB_HASH, "expected a list, found a string"),
        ("set code", 5, b"", "can't create"),
        ("set code", 9, [[b""]], "list of 6"),
        ("set code", 9, [[b"", TO, b"", b"\x01" * 2, b"", b""]], "at most 1"),
    ],
)
def test_malformed_transaction_is_refused(name, place, item, reason):
    transaction = sign_transaction(FIELDS[name], KEY)
    with pytest.raises(RlpError, match=reason):
        decode_transaction(changed(transaction, place, item))


@pytest.mark.parametrize("name", FIELDS)
def test_missing_and_surplus_bytes_are_refused(name):
    raw = sign_transaction(FIELDS[name], KEY).raw
    for data in (raw[:-1], raw + b"\x00", b""):
        with pytest.raises(RlpError):
            decode_transaction(data)


def test_unknown_type_is_refused():
    for kind in (0, 5, 0x7F):
        raw = bytes([kind]) + sign_transaction(FIELDS["dynamic fee"], KEY).raw[1:]
        with pytest.raises(RlpError, match=f"type {kind} is unknown"):
            decode_transaction(raw)


def test_type_decides_how_many_fields_there_are():
    raw = sign_transaction(FIELDS["dynamic fee"], KEY).raw
    with pytest.raises(RlpError, match="list of 11 fields"):
        decode_transaction(b"\x01" + raw[1:])
    with pytest.raises(RlpError, match="list of 12 fields"):
        decode_transaction(b"\x02\x80")
