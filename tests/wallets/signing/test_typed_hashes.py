"""The signature covers the displayed values, whatever names a dapp chooses.

The tests compute the digest from the displayed fields, and check that the signature is
one of that digest.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from coincurve import PrivateKey, PublicKey
from eth_utils import keccak

from wallets.signing.typed_data import (
    MAX_TYPE_TEXT,
    Field,
    TypedData,
    read_typed_data,
    sign_typed_data,
)
from wallets.signing.typed_hashes import HashMismatch, encode
from wallets.signing.typed_types import ARRAY

KEY = keccak(text="cow")

ELEMENTARY = [
    *("uint", "int", "uint8", "uint256", "int256", "uint7", "int08", "uint512"),
    *("bytes", "bytes0", "bytes1", "bytes32", "bytes33", "byte", "string", "bool"),
    *("address", "function", "fixed", "ufixed", "fixed128x18", "ufixed8x1", "tuple"),
    *("mapping", "var"),
]
MALFORMED = ["", "uint[]", "A[2]", "A[", "A]", "A B", "A,B", "A(", "1A", "Ä", "\ud800"]
STRUCTURES = [
    *("A", "B", "Uint", "Int256", "uintX", "int_", "uint_8", "bytesX", "bytes_32"),
    *("bool2", "string1", "address_", "$", "_", "a.b", "a:b", "a-b", "int.", "uint-8"),
    *("EIP712", "constructor", "__proto__", "toString", "tuple2", "functions"),
]
MEMBERS = [
    *("a", "b", "from", "uint", "uint256", "__proto__", "types", "domain", "ключ"),
    *("x y", "a,b", "a)", "", "\u202ea", "e\u0301", "é", "\ud800", "a\udfff", "😀"),
]
ATOMS: dict[str, list[Any]] = {
    "uint256": [0, "1", "0xff", str(2**256 - 1)],
    "uint8": [0, 255],
    "int64": [-(2**63), "-0x1", 2**63 - 1],
    "bool": [True, False],
    "address": ["0x" + "aB" * 20],
    "bytes4": ["0xdeadbeef"],
    "bytes32": ["0x" + "0f" * 32],
    "bytes": ["0x", "0x00ff"],
    "string": ["", "0x00", "null", "text", "\u202e", "😀"],
}
WRONG = [256, "false", None, "0x12", 1.5, [], {}, "\udc00"]
"""Values that most types don't have."""


# The digest of the displayed values


def is_signed_as_shown(data: TypedData) -> bool:
    signature = sign_typed_data(data, KEY)
    recoverable = signature[:64] + bytes([signature[64] - 27])
    signer = PublicKey.from_signature_and_message(
        recoverable, digest_of_shown(data), hasher=None
    )
    return signer == PrivateKey(KEY).public_key


def digest_of_shown(data: TypedData) -> bytes:
    domain = data.domain_fields()
    domain_type = ",".join(f"{field.type} {field.name}" for field in domain)
    separator = keccak(
        keccak(text=f"EIP712Domain({domain_type})")
        + b"".join(word(field, data) for field in domain)
    )
    shown = Field("", data.primary_type, None, data.fields())
    return keccak(b"\x19\x01" + separator + word(shown, data))


def word(field: Field, data: TypedData) -> bytes:
    kind, shown = field.type, field.value
    if kind.endswith("]"):
        return keccak(b"".join(word(one, data) for one in field.fields))
    if kind in data.types:
        if shown == "null":
            return bytes(32)
        words = [word(one, data) for one in field.fields]
        return keccak(keccak(text=type_text(kind, data)) + b"".join(words))
    assert shown is not None
    if kind == "string":
        return keccak(text=shown)
    if kind == "bool":
        return {"true": 1, "false": 0}[shown].to_bytes(32)
    if "int" in kind:
        return int(shown).to_bytes(32, signed=int(shown) < 0)
    raw = bytes.fromhex(shown.removeprefix("0x"))
    if kind == "bytes":
        return keccak(raw)
    return raw.rjust(32, b"\0") if kind == "address" else raw.ljust(32, b"\0")


def type_text(name: str, data: TypedData) -> str:
    found = {name}
    while True:
        cores = {kind.split("[")[0] for one in found for _, kind in data.types[one]}
        if cores & data.types.keys() <= found:
            break
        found |= cores & data.types.keys()
    return "".join(
        f"{one}({','.join(f'{kind} {member}' for member, kind in data.types[one])})"
        for one in [name, *sorted(found - {name})]
    )


# Random data


def document(chance: random.Random) -> dict[str, Any]:
    """Return data as a dapp may send it, mostly valid, often with one unusual name."""
    odd = [*ELEMENTARY, *MALFORMED, "EIP712Domain"]
    names = chance.sample(STRUCTURES, chance.randint(1, 4))
    if chance.random() < 0.3:
        names.insert(chance.randint(0, len(names)), chance.choice(odd))
    types: dict[str, list[dict[str, str]]] = {}
    for place, name in enumerate(names):
        members = chance.sample(MEMBERS[:9], chance.randint(0, 4))
        if chance.random() < 0.05:
            members.append(chance.choice(MEMBERS))
        below = [*names[place + 1 :], *names[1:][place - 1 : place], *ATOMS]
        types[name] = [
            {"name": m, "type": chance.choice(below) + dimensions(chance)}
            for m in members
        ]
    for one, other in pairwise(names):
        types[one].append({"name": "next", "type": other + dimensions(chance)})
    message = value_of(chance, names[0], types, 0)
    domain = [
        {"name": "name", "type": "string"},
        {"name": "chainId", "type": "uint256"},
    ]
    return {
        "types": {**types, "EIP712Domain": domain},
        "primaryType": names[0],
        "domain": {"name": "d", "chainId": chance.choice([1, "0x1", 2**255])},
        "message": {} if message is None else message,
    }


def dimensions(chance: random.Random) -> str:
    return chance.choice(["", "", "", "", "[]", "[2]", "[][1]", "[0]"])


def value_of(chance: random.Random, kind: str, types: Any, depth: int) -> Any:
    if kind not in types and ARRAY.fullmatch(kind):
        element, _, length = kind[:-1].rpartition("[")
        count = int(length or chance.randint(0, 2))
        return [value_of(chance, element, types, depth + 1) for _ in range(count)]
    if kind not in types:
        return chance.choice(WRONG if chance.random() < 0.01 else ATOMS.get(kind, [0]))
    if depth > 4 or chance.random() < 0.05:
        return None
    return {
        one["name"]: value_of(chance, one["type"], types, depth + 1)
        for one in types[kind]
    }


@pytest.mark.parametrize("seed", range(4))
def test_signature_is_of_the_digest_of_what_is_shown(seed):
    chance, outcomes = random.Random(seed), Counter[str]()
    for _ in range(1500):
        sent = document(chance)
        try:
            data = read_typed_data(sent)
        except ValueError as refusal:
            outcomes["refused"] += 1
            str(refusal).encode()
            continue
        outcomes["signed"] += 1
        assert not data.types.keys() & {*ELEMENTARY, *MALFORMED, "EIP712Domain"}
        assert is_signed_as_shown(data), sent
    assert outcomes["signed"] > 400
    assert outcomes["refused"] > 200


# Names


def with_structure(name: str) -> dict[str, Any]:
    """Return data whose only unusual part is the name of a structure."""
    return {
        "types": {
            "EIP712Domain": [{"name": "name", "type": "string"}],
            "Order": [{"name": "amount", "type": name}],
            name: [{"name": "recipient", "type": "string"}],
        },
        "primaryType": "Order",
        "domain": {"name": "d"},
        "message": {"amount": {"recipient": "somebody"}},
    }


@pytest.mark.parametrize("name", ELEMENTARY)
def test_structure_with_the_name_of_an_elementary_type_is_refused(name):
    with pytest.raises(ValueError, match=f"^types: {name} is an elementary type"):
        read_typed_data(with_structure(name))


@pytest.mark.parametrize("name", MALFORMED)
def test_structure_with_a_malformed_name_is_refused(name):
    with pytest.raises(ValueError, match=r"^types: "):
        read_typed_data(with_structure(name))


def test_domain_is_no_member_of_a_structure():
    data = with_structure("Item")
    data["types"]["Order"] = [{"name": "amount", "type": "EIP712Domain"}]
    with pytest.raises(ValueError, match=r"^types\.Order\.amount: its type is unknown"):
        read_typed_data(data | {"message": {"amount": "0x"}})


@pytest.mark.parametrize("name", STRUCTURES)
def test_other_names_are_signed(name):
    assert is_signed_as_shown(read_typed_data(with_structure(name)))


@pytest.mark.parametrize("name", ["uint", "int"])
def test_library_that_hashes_something_else_is_noticed(name):
    """eth-account omits the structure from the encoded type, so that the hashes differ."""
    types = {"Order": [("amount", name)], name: [("recipient", "string")]}
    message = {"amount": {"recipient": "somebody"}}
    with pytest.raises(
        HashMismatch, match=r"^Order: the signing library hashes it diff"
    ):
        encode({"name": "d"}, [("name", "string")], types, "Order", message)


def test_data_that_the_library_can_not_encode_is_refused():
    with pytest.raises(HashMismatch, match="can't encode it"):
        encode({}, [], {"Order": [("amount", "Nowhere")]}, "Order", {"amount": 1})


def test_work_of_hashing_is_limited():
    """Structures refer to many types. Each is hashed with the text of all of them."""
    many = {f"T{n}": [{"name": "x" * 90, "type": "uint8"}] for n in range(50)}
    data = with_structure("Item")
    data["types"] |= many
    data["types"]["Item"] = [
        {"name": f"m{n}", "type": name} for n, name in enumerate(many)
    ]
    data["types"]["Order"] = [{"name": "items", "type": "Wrapped[]"}]
    data["types"]["Wrapped"] = [{"name": "item", "type": "Item"}]
    data["message"] = {"items": [{"item": None}] * 10}
    assert len(read_typed_data(data).fields()[0].fields) == 10
    data["message"] = {"items": [{"item": None}] * 400}
    with pytest.raises(ValueError, match=r"^types: too long for so many structures"):
        read_typed_data(data)
    assert MAX_TYPE_TEXT < 400 * 50 * 90


def test_null_looks_different_from_a_structure_without_members():
    def shown(value: object) -> tuple[Field, ...]:
        data = with_structure("Nothing")
        data["types"]["Nothing"] = []
        return read_typed_data(data | {"message": {"amount": value}}).fields()

    assert shown(None) == (Field("amount", "Nothing", "null"),)
    assert shown({}) == (Field("amount", "Nothing", None),)
