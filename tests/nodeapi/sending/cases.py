"""Transactions that geth rejects, with its error texts.

geth 1.17.10 with `--dev` and a genesis without Bogota, so that its head is in Osaka, answers
eth_sendRawTransaction with these texts. Sources: go-ethereum v1.17.10, rlp/decode.go, rlp/raw.go,
core/types/transaction.go, core/types/tx_blob.go, core/txpool/validation.go.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from eth_typing import Address

from evm import rlp
from evm.signatures import CURVE_ORDER
from evm.signing import sign_authorization, sign_transaction

CHAIN_ID = 1337
KEY = b"\x01" * 32
TO = Address(b"\xb0" * 20)
GWEI = 10**9

LEGACY: dict[str, Any] = {
    **{"chain_id": CHAIN_ID, "nonce": 0, "gas": 21_000, "to": TO, "value": 1},
    "gas_price": 2 * GWEI,
}
ACCESS_LIST = {**LEGACY, "type": 1}
DYNAMIC = {
    **{"type": 2, "chain_id": CHAIN_ID, "nonce": 0, "gas": 21_000, "to": TO},
    **{"max_fee_per_gas": 2 * GWEI, "max_priority_fee_per_gas": GWEI, "value": 1},
}
SET_CODE = {
    **{**DYNAMIC, "type": 4, "gas": 60_000},
    "authorization_list": [sign_authorization(CHAIN_ID, TO, 0, KEY)],
}

BLOB = b"\0" * 131_072
COMMITMENT = b"\xc0" + b"\0" * 47
"""The commitment of a blob of zeros: the point at infinity, as are its proofs."""
BLOB_HASH = b"\x01" + sha256(COMMITMENT).digest()[1:]
ONES = (1).to_bytes(32) * 4096
"""The blob of the constant polynomial 1. Its proofs are the point at infinity, too."""
GENERATOR = bytes.fromhex(
    "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58"
    "6c55e83ff97a1aeffb3af00adb22c6bb"
)
"""The generator of BLS12-381's first group, which is the commitment of ONES."""
MALFORMED_BLOB = BLOB[:-32] + b"\xff" * 32
MALFORMED_POINTS = {
    b"\0" * 48: "short buffer",
    b"\x20" + b"\0" * 47: "invalid point encoding",
    b"\xc0" + b"\0" * 46 + b"\x01": "invalid infinity point encoding",
    b"\x9f" + b"\xff" * 47: "invalid fp.Element encoding",
    b"\x80" + b"\0" * 46 + b"\x01": (
        "invalid compressed coordinate: square root doesn't exist"
    ),
    b"\x80" + b"\0" * 46 + b"\x04": "invalid point: subgroup check failed",
}
"""48 bytes that are no point of the group → geth's text."""
BLOB_TRANSACTION = {
    **{**DYNAMIC, "type": 3},
    **{"max_fee_per_blob_gas": GWEI, "blob_versioned_hashes": [BLOB_HASH]},
}


def signed(fields: dict[str, Any], **changes: Any) -> bytes:
    """Return a raw transaction."""
    return sign_transaction({**fields, **changes}, KEY).raw  # type: ignore[typeddict-item]


def fields_of(raw: bytes) -> list[Any]:
    """Return the decoded members of a raw transaction."""
    members: list[Any] = rlp.decode(raw if raw[0] >= 0xC0 else raw[1:])
    return members


def changed(raw: bytes, position: int, *members: Any) -> bytes:
    """Return a raw transaction with other members at a position, and its signature."""
    found = fields_of(raw)
    found[position : position + 1] = members
    return (b"" if raw[0] >= 0xC0 else raw[:1]) + rlp.encode(found)


def with_sidecar(
    version: int | None = 1,
    *,
    blobs: int = 1,
    commitments: int = 1,
    proofs: int | None = None,
    **changes: Any,
) -> bytes:
    """Return a blob transaction in its network form.

    version: None for version 0, which is not named in the encoding.
    """
    if proofs is None:
        proofs = 1 if version is None else 128
    named = [] if version is None else [rlp.encode_int(version)]
    sidecar = [[BLOB] * blobs, [COMMITMENT] * commitments, [COMMITMENT] * proofs]
    members = fields_of(signed(BLOB_TRANSACTION, **changes))
    return b"\x03" + rlp.encode([members, *named, *sidecar])


def with_contents(
    version: int,
    blobs: list[bytes],
    commitments: list[bytes],
    proofs: list[bytes] | None = None,
    **changes: Any,
) -> bytes:
    """Return a blob transaction in its network form, with the hashes of commitments.

    proofs: by default those of constant polynomials.
    """
    hashes = [b"\x01" + sha256(each).digest()[1:] for each in commitments]
    transaction = signed(BLOB_TRANSACTION, blob_versioned_hashes=hashes, **changes)
    return network_form(transaction, version, blobs, commitments, proofs)


def network_form(
    raw: bytes,
    version: int,
    blobs: list[bytes],
    commitments: list[bytes],
    proofs: list[bytes] | None = None,
) -> bytes:
    """Return a raw blob transaction with a sidecar.

    proofs: by default those of constant polynomials.
    """
    if proofs is None:
        proofs = [COMMITMENT] * (128 if version else 1) * len(blobs)
    named = [rlp.encode_int(version)] if version else []
    return b"\x03" + rlp.encode([fields_of(raw), *named, blobs, commitments, proofs])


def unprotected(v: int) -> bytes:
    """Return a legacy transaction with another value of v."""
    return changed(signed(LEGACY), 6, rlp.encode_int(v))


def unrecoverable() -> bytes:
    """Return a transaction whose signature belongs to no key."""
    # 5 is no x coordinate of the curve.
    return changed(signed(DYNAMIC), 10, b"\x05")


_DYNAMIC = signed(DYNAMIC)
_LEGACY = signed(LEGACY)
_PARITY, _R, _S = 9, 10, 11

MALFORMED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "typed transaction too short"),
    "one byte": (b"\x02", "typed transaction too short"),
    "unknown type": (b"\x05\xc0", "transaction type not supported"),
    "type 127": (b"\x7f\xc0", "transaction type not supported"),
    "a string": (b"\x80", "rlp: expected input list for types.LegacyTx"),
    "an empty list": (b"\xc0", "rlp: too few elements for types.LegacyTx"),
    "typed, no list": (
        b"\x02\x80",
        "rlp: expected input list for types.DynamicFeeTx",
    ),
    "typed, cut short": (
        _DYNAMIC[:-1],
        "rlp: value size exceeds available input length",
    ),
    "cut short": (_LEGACY[:-1], "rlp: value size exceeds available input length"),
    "bytes after it": (_LEGACY + b"\0", "rlp: input contains more than one value"),
    "typed, bytes after it": (
        _DYNAMIC + b"\0",
        "rlp: input contains more than one value",
    ),
    "length with zeros": (
        b"\xf9\x00\x40" + b"\x80" * 64,
        "rlp: non-canonical size information for types.LegacyTx",
    ),
    "short list with a length": (
        b"\xf8\x01\x80",
        "rlp: non-canonical size information for types.LegacyTx",
    ),
    "length cut short": (b"\xf9\x01", "rlp: value size exceeds available input length"),
    "too few members": (
        changed(_DYNAMIC, _S),
        "rlp: too few elements for types.DynamicFeeTx",
    ),
    "too many members": (
        changed(_DYNAMIC, _S, b"\x01", b"\x01"),
        "rlp: input list has too many elements for types.DynamicFeeTx",
    ),
    "member beyond the list": (
        b"\xc3\x01\x02\x84",
        "rlp: element is larger than containing list",
    ),
    "nonce is a list": (
        changed(_LEGACY, 0, []),
        "rlp: expected input string or byte for uint64, "
        "decoding into (types.LegacyTx).Nonce",
    ),
    "nonce too long": (
        changed(_LEGACY, 0, b"\x01" * 9),
        "rlp: input string too long for uint64, decoding into (types.LegacyTx).Nonce",
    ),
    "nonce with zeros": (
        changed(_LEGACY, 0, b"\x00\x01"),
        "rlp: non-canonical integer (leading zero bytes) for uint64, "
        "decoding into (types.LegacyTx).Nonce",
    ),
    "nonce zero as a byte": (
        changed(_DYNAMIC, 1, b"\x00"),
        "rlp: non-canonical integer (leading zero bytes) for uint64, "
        "decoding into (types.DynamicFeeTx).Nonce",
    ),
    "small nonce as a string": (
        b"\xc3\x81\x01\x01",
        "rlp: non-canonical size information for uint64, "
        "decoding into (types.LegacyTx).Nonce",
    ),
    "price with zeros": (
        changed(_LEGACY, 1, b"\x00\x01"),
        "rlp: non-canonical integer (leading zero bytes) for *big.Int, "
        "decoding into (types.LegacyTx).GasPrice",
    ),
    "price is a list": (
        changed(_DYNAMIC, 2, []),
        "rlp: expected input string or byte for *big.Int, "
        "decoding into (types.DynamicFeeTx).GasTipCap",
    ),
    "receiver too short": (
        changed(_LEGACY, 3, b"\xb0" * 19),
        "rlp: input string too short for common.Address, "
        "decoding into (types.LegacyTx).To",
    ),
    "receiver too long": (
        changed(_LEGACY, 3, b"\xb0" * 21),
        "rlp: input string too long for common.Address, "
        "decoding into (types.LegacyTx).To",
    ),
    "receiver is one byte": (
        changed(_LEGACY, 3, b"\x01"),
        "rlp: input string too short for common.Address, "
        "decoding into (types.LegacyTx).To",
    ),
    "receiver is an empty list": (
        changed(_LEGACY, 3, []),
        "rlp: wrong kind of empty value (got List, want String) for *common.Address, "
        "decoding into (types.LegacyTx).To",
    ),
    "receiver is a list": (
        changed(_LEGACY, 3, [b"\x01"]),
        "rlp: expected input string or byte for common.Address, "
        "decoding into (types.LegacyTx).To",
    ),
    "data is a list": (
        changed(_LEGACY, 5, []),
        "rlp: expected input string or byte for []uint8, "
        "decoding into (types.LegacyTx).Data",
    ),
    "access list is a string": (
        changed(_DYNAMIC, 8, b""),
        "rlp: expected input list for types.AccessList, "
        "decoding into (types.DynamicFeeTx).AccessList",
    ),
    "access list of strings": (
        changed(_DYNAMIC, 8, [b"\x01"]),
        "rlp: expected input list for types.AccessTuple, "
        "decoding into (types.DynamicFeeTx).AccessList[0]",
    ),
    "access without slots": (
        changed(_DYNAMIC, 8, [[TO, []], [TO]]),
        "rlp: too few elements for types.AccessTuple, "
        "decoding into (types.DynamicFeeTx).AccessList[1]",
    ),
    "slot too short": (
        changed(_DYNAMIC, 8, [[TO, [b"\x01" * 32, b"\x01" * 31]]]),
        "rlp: input string too short for common.Hash, "
        "decoding into (types.DynamicFeeTx).AccessList[0].StorageKeys[1]",
    ),
    "type 1, slots are a string": (
        changed(signed(ACCESS_LIST), 7, [[TO, b""]]),
        "rlp: expected input list for []common.Hash, "
        "decoding into (types.AccessListTx).AccessList[0].StorageKeys",
    ),
    "authorization is a string": (
        changed(signed(SET_CODE), 9, [b""]),
        "rlp: expected input list for types.SetCodeAuthorization, "
        "decoding into (types.SetCodeTx).AuthList[0]",
    ),
    "authorization with a long parity": (
        changed(
            signed(SET_CODE), 9, [[b"\x01", TO, b"", b"\x01\x00", b"\x01", b"\x01"]]
        ),
        "rlp: input string too long for uint8, "
        "decoding into (types.SetCodeTx).AuthList[0].V",
    ),
    "authorization for a long chain id": (
        changed(signed(SET_CODE), 9, [[b"\x01" * 33, TO, b"", b"", b"\x01", b"\x01"]]),
        "rlp: value too large for uint256",
    ),
    "set code without receiver": (
        changed(signed(SET_CODE), 5, b""),
        "rlp: input string too short for common.Address, "
        "decoding into (types.SetCodeTx).To",
    ),
    "type 4, value too large": (
        changed(signed(SET_CODE), 6, b"\x01" * 33),
        "rlp: value too large for uint256",
    ),
    "blobs, no list": (b"\x03\x80", "rlp: expected List"),
    "blobs, an empty list": (b"\x03\xc0", "unexpected EOF"),
    "blobs, cut short": (
        signed(BLOB_TRANSACTION)[:-1],
        "rlp: value size exceeds available input length",
    ),
    "blobs, length cut short": (b"\x03\xf9\x01", "unexpected EOF"),
    "blobs, nothing after the transaction": (
        b"\x03" + rlp.encode([fields_of(signed(BLOB_TRANSACTION))]),
        "unexpected EOF",
    ),
    "blobs, no sidecar": (
        b"\x03" + rlp.encode([fields_of(signed(BLOB_TRANSACTION)), [], []]),
        "rlp: too few elements for types.blobTxWithBlobsV0",
    ),
    "blob too short": (
        b"\x03" + rlp.encode([fields_of(signed(BLOB_TRANSACTION)), [BLOB[1:]], [], []]),
        "rlp: input string too short for kzg4844.Blob, "
        "decoding into (types.blobTxWithBlobsV0).Blobs[0]",
    ),
    "proof too long": (
        b"\x03"
        + rlp.encode(
            [fields_of(signed(BLOB_TRANSACTION)), b"\x01", [], [], [b"\0" * 49]]
        ),
        "rlp: input string too long for kzg4844.Proof, "
        "decoding into (types.blobTxWithBlobsV1).Proofs[0]",
    ),
    "sidecar of version 2": (with_sidecar(2), "unsupported blob tx version 2"),
    "blob transaction with a bad member": (
        b"\x03"
        + rlp.encode(
            [fields_of(changed(signed(BLOB_TRANSACTION), 1, b"\0")), [], [], []]
        ),
        "rlp: non-canonical integer (leading zero bytes) for uint64, "
        "decoding into (types.blobTxWithBlobsV0).BlobTx.Nonce",
    ),
}
"""Name → bytes that are no transaction, and geth's error text for them."""

INVALID: dict[str, tuple[bytes, str]] = {
    "no chain id": (
        signed({**LEGACY, "chain_id": None}),
        "only replay-protected (EIP-155) transactions allowed over RPC",
    ),
    "v is 0": (
        unprotected(0),
        "only replay-protected (EIP-155) transactions allowed over RPC",
    ),
    "v is 29": (
        unprotected(29),
        "invalid sender: invalid chain id for signer: "
        "have 9223372036854775805 want 1337",
    ),
    "too long": (
        signed(DYNAMIC, gas=10_000_000, data=b"\0" * 131_072),
        "oversized data: transaction size 131189, limit 131072",
    ),
    "init code too long": (
        signed({**DYNAMIC, "to": Address(b"")}, gas=10_000_000, data=b"\0" * 49_153),
        "max initcode size exceeded: code size 49153 limit 49152",
    ),
    "gas above the cap": (
        signed(DYNAMIC, gas=2**24 + 1),
        "transaction gas limit too high (cap: 16777216, tx: 16777217)",
    ),
    "fee above 256 bits": (
        changed(_DYNAMIC, 3, b"\x01" * 33),
        "max fee per gas higher than 2^256-1",
    ),
    "tip above 256 bits": (
        changed(_DYNAMIC, 2, b"\x01" * 33),
        "max priority fee per gas higher than 2^256-1",
    ),
    "tip above the fee": (
        signed(DYNAMIC, max_priority_fee_per_gas=2 * GWEI + 1),
        "max priority fee per gas higher than max fee per gas",
    ),
    "another chain": (
        signed(DYNAMIC, chain_id=1),
        "invalid sender: invalid chain id for signer: have 1 want 1337",
    ),
    "legacy, another chain": (
        signed(LEGACY, chain_id=1),
        "invalid sender: invalid chain id for signer: have 1 want 1337",
    ),
    "r is 0": (
        changed(_DYNAMIC, _R, b""),
        "invalid sender: invalid transaction v, r, s values",
    ),
    "s is high": (
        changed(
            _DYNAMIC,
            _S,
            rlp.encode_int(CURVE_ORDER - int.from_bytes(fields_of(_DYNAMIC)[_S])),
        ),
        "invalid sender: invalid transaction v, r, s values",
    ),
    "parity is 2": (
        changed(_DYNAMIC, _PARITY, b"\x02"),
        "invalid sender: invalid transaction v, r, s values",
    ),
    "no signer": (unrecoverable(), "invalid sender: recovery failed"),
    "value above 256 bits": (
        changed(_DYNAMIC, 6, b"\x01" * 33),
        "insufficient funds for gas * price + value",
    ),
    "r above 256 bits": (
        changed(_DYNAMIC, _R, b"\x01" * 33),
        "transaction chain id or signature value exceeds 256 bits",
    ),
    "legacy, v above 256 bits": (
        unprotected(2**256),
        "transaction chain id or signature value exceeds 256 bits",
    ),
    "version 0 and two blobs": (
        with_sidecar(None, blobs=2),
        "Wrong sidecar format: invalid number of 256 blob proofs expected 128",
    ),
    "highest nonce": (signed(DYNAMIC, nonce=2**64 - 1), "nonce has max value"),
    "too little gas": (
        signed(DYNAMIC, gas=20_999),
        "intrinsic gas too low: gas 20999, minimum needed 21000",
    ),
    "too little gas for a creation": (
        signed({**DYNAMIC, "to": Address(b"")}, gas=53_000, data=b"\x01"),
        "intrinsic gas too low: gas 53000, minimum needed 53018",
    ),
    "too little gas for the data": (
        signed(DYNAMIC, gas=22_000, data=b"\x01" * 50),
        "insufficient gas for floor data gas cost: gas 22000, minimum needed 23000",
    ),
    "no authorization": (
        signed(SET_CODE, authorization_list=[]),
        "set code tx must have at least one authorization tuple",
    ),
    "no sidecar": (
        signed(BLOB_TRANSACTION),
        "missing sidecar in blob transaction",
    ),
    "too many blobs": (
        with_sidecar(
            blobs=7, commitments=7, proofs=7, blob_versioned_hashes=[BLOB_HASH] * 7
        ),
        "transaction blob limit exceeded: blob count 7, limit 6",
    ),
    "too many blobs without a sidecar": (
        signed(BLOB_TRANSACTION, blob_versioned_hashes=[BLOB_HASH] * 7),
        "missing sidecar in blob transaction",
    ),
    "no blobs": (
        with_sidecar(blobs=0, commitments=0, proofs=0, blob_versioned_hashes=[]),
        "blobless blob transaction",
    ),
    "no fee for blobs": (
        with_sidecar(max_fee_per_blob_gas=0),
        "transaction gas price below minimum: blob fee cap 0, minimum needed 1",
    ),
    "too many blobs in the sidecar": (
        with_sidecar(blobs=2),
        "invalid number of 2 blobs compared to 1 commitments",
    ),
    "too many commitments": (
        with_sidecar(commitments=2),
        "invalid number of 2 blob commitments compared to 1 blob hashes",
    ),
    "other commitment": (
        with_sidecar(blob_versioned_hashes=[b"\x01" + b"\x02" * 31]),
        f"blob 0: computed hash 0x{BLOB_HASH.hex()} "
        f"mismatches transaction one 0x01{'02' * 31}",
    ),
    "too few proofs": (
        with_sidecar(proofs=127),
        "Wrong sidecar format: invalid number of 127 blob proofs expected 128",
    ),
}
"""Name → a transaction that breaks a rule, and geth's error text for it."""

_KZG = "KZG verification error"
_SCALAR = "scalar is not canonical when interpreted as a big integer in big-endian"
_OPENING = "can't verify opening proof"
_NO_POINT, _NO_POINT_TEXT = next(iter(MALFORMED_POINTS.items()))
_NO_SQUARE, _NO_SQUARE_TEXT = list(MALFORMED_POINTS.items())[4]

INVALID_CELL_PROOFS: dict[str, tuple[bytes, str]] = {
    "commitment of another blob": (
        with_contents(1, [BLOB], [GENERATOR]),
        f"{_KZG}: {_OPENING}",
    ),
    "one wrong proof": (
        with_contents(1, [ONES], [GENERATOR], [COMMITMENT] * 127 + [GENERATOR]),
        f"{_KZG}: {_OPENING}",
    ),
    "second blob is wrong": (
        with_contents(1, [BLOB, BLOB], [COMMITMENT, GENERATOR]),
        f"{_KZG}: {_OPENING}",
    ),
    "malformed blob": (
        with_contents(1, [MALFORMED_BLOB], [COMMITMENT]),
        _SCALAR,
    ),
    "malformed commitment": (
        with_contents(1, [BLOB], [_NO_SQUARE]),
        f"{_KZG}: {_NO_SQUARE_TEXT}",
    ),
    "malformed commitment and proof": (
        with_contents(1, [BLOB], [_NO_SQUARE], [_NO_POINT] * 128),
        f"{_KZG}: {_NO_SQUARE_TEXT}",
    ),
    "malformed proof and second commitment": (
        with_contents(
            1, [BLOB] * 2, [COMMITMENT, _NO_SQUARE], [_NO_POINT] + [COMMITMENT] * 255
        ),
        f"{_KZG}: {_NO_SQUARE_TEXT}",
    ),
    "malformed commitment and second blob": (
        with_contents(1, [BLOB, MALFORMED_BLOB], [_NO_SQUARE, COMMITMENT]),
        _SCALAR,
    ),
    "version 0, commitment of another blob": (
        with_contents(0, [BLOB], [GENERATOR]),
        f"{_KZG}: {_OPENING}",
    ),
    "version 0, malformed commitment": (
        with_contents(0, [BLOB], [_NO_SQUARE]),
        f"{_KZG}: {_NO_SQUARE_TEXT}",
    ),
    "version 0, malformed blob": (
        with_contents(0, [MALFORMED_BLOB], [COMMITMENT]),
        f"blob sidecar conversion failed: {_SCALAR}",
    ),
    **{
        f"malformed proof: {text}": (
            with_contents(1, [BLOB], [COMMITMENT], [COMMITMENT] * 127 + [point]),
            f"{_KZG}: {text}",
        )
        for point, text in MALFORMED_POINTS.items()
    },
}
"""Name → a transaction with invalid proofs, and geth's error text from Osaka on."""

INVALID_BLOB_PROOFS: dict[str, tuple[bytes, str]] = {
    "commitment of another blob": (
        with_contents(0, [BLOB], [GENERATOR]),
        f"{_KZG}: invalid blob proof: {_OPENING}",
    ),
    "wrong proof": (
        with_contents(0, [ONES], [GENERATOR], [GENERATOR]),
        f"{_KZG}: invalid blob proof: {_OPENING}",
    ),
    "malformed blob, commitment and proof": (
        with_contents(0, [MALFORMED_BLOB], [_NO_SQUARE], [_NO_POINT]),
        f"{_KZG}: invalid blob proof: {_SCALAR}",
    ),
    "malformed commitment and proof": (
        with_contents(0, [BLOB], [_NO_SQUARE], [_NO_POINT]),
        f"{_KZG}: invalid blob proof: {_NO_SQUARE_TEXT}",
    ),
    "malformed proof": (
        with_contents(0, [BLOB], [COMMITMENT], [_NO_POINT]),
        f"{_KZG}: invalid blob proof: {_NO_POINT_TEXT}",
    ),
    "wrong proof before a malformed blob": (
        with_contents(0, [ONES, MALFORMED_BLOB], [COMMITMENT, COMMITMENT]),
        f"{_KZG}: invalid blob proof: {_OPENING}",
    ),
}
"""Name → a transaction with invalid proofs, and the error text before Osaka.

It is geth 1.17.2's: 1.17.10 has no proofs of whole blobs any more.
"""

VALID_PROOFS: dict[str, bytes] = {
    "version 0": with_contents(0, [BLOB, ONES], [COMMITMENT, GENERATOR]),
    "version 1": with_contents(1, [BLOB, ONES], [COMMITMENT, GENERATOR]),
    "version 1, the same blob twice": with_contents(1, [ONES] * 2, [GENERATOR] * 2),
}
"""Name → a transaction whose proofs are valid: of blobs, or of cells from Osaka on."""

VALID: dict[str, bytes] = {
    "legacy": _LEGACY,
    "access list": signed(ACCESS_LIST, gas=30_000, access_list=[(TO, [1, 2])]),
    "dynamic fee": _DYNAMIC,
    "creation": signed({**DYNAMIC, "to": Address(b"")}, gas=60_000, data=b"\x60\x00"),
    "set code": signed(SET_CODE),
    "blobs, sidecar of version 0": with_sidecar(None),
    "blobs, sidecar of version 1": with_sidecar(1),
}
"""Transactions that follow all rules, except that their sender has no ether."""
