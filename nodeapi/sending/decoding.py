"""Raw transactions as senders submit them: all types, with the sidecars of blobs.

A blob transaction is submitted in its network form, in which its blobs, commitments and
proofs follow the transaction. Its hash does not cover this sidecar.

Sources: go-ethereum v1.17.10, core/types/transaction.go, tx_blob.go;
https://eips.ethereum.org/EIPS/eip-4844 (sidecars of version 0), -7594 (version 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eth_typing import Address, Hash32

from evm import rlp
from evm.transactions import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    Authorization,
    Transaction,
)
from nodeapi.sending.stream import (
    TOO_LARGE_FOR_INPUT,
    Members,
    RlpFault,
    Stream,
    decode_struct,
)

BLOB_BYTES = 131_072
_LEGACY_OFFSET = 27
_EIP155_OFFSET = 35
_UNPROTECTED = (0, 1, 27, 28)
"""Values of v with which geth takes a legacy signature as one without a chain id."""

_ADDRESS = "common.Address"
_CUT_SHORT = "unexpected EOF"
_SIZE = "rlp: non-canonical size information"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The sidecar of a blob transaction.

    version: 0 with one proof for each blob; 1 with proofs for the cells of each blob.
    blobs: BLOB_BYTES each. commitments, proofs: 48 bytes each.
    """

    version: int
    blobs: list[bytes]
    commitments: list[bytes]
    proofs: list[bytes]


@dataclass(frozen=True, slots=True)
class Submission:
    """A decoded transaction.

    raw: the submitted bytes, the sidecar included.
    sidecar: None for other types, and for a blob transaction without a sidecar.
    """

    transaction: Transaction
    raw: bytes
    sidecar: Sidecar | None = None

    @property
    def is_protected(self) -> bool:
        """Whether the signature covers a chain id (EIP-155)."""
        transaction = self.transaction
        return transaction.type != LEGACY or transaction.v not in _UNPROTECTED


def decode_submission(raw: bytes) -> Submission:
    """Decode the argument of eth_sendRawTransaction.

    Signatures are not checked, not even the range of their values.

    Raises: ValueError with geth's text.
    """
    if raw[:1] > b"\x7f":
        values = decode_struct(raw, 0, "types.LegacyTx", _LEGACY_MEMBERS)
        return Submission(_legacy(raw, values), raw)
    if len(raw) <= 1:
        raise RlpFault("typed transaction too short")
    if raw[0] == BLOB:
        return _blob(raw)
    if raw[0] not in _TYPES:
        raise RlpFault("transaction type not supported")
    name, members, build = _TYPES[raw[0]]
    return Submission(build(raw, decode_struct(raw, 1, name, members)), raw)


# Readers


def _uint64(stream: Stream) -> int:
    return stream.uint(64)


def _data(stream: Stream) -> bytes:
    return stream.string("[]uint8")


def _to(stream: Stream) -> Address:
    return Address(stream.optional_fixed(20, _ADDRESS))


def _address(stream: Stream) -> Address:
    return Address(stream.fixed(20, _ADDRESS))


def _hash(stream: Stream) -> Hash32:
    return Hash32(stream.fixed(32, "common.Hash"))


def _hashes(stream: Stream) -> list[Hash32]:
    return stream.items("[]common.Hash", _hash)


def _access_list(stream: Stream) -> list[Any]:
    return stream.items("types.AccessList", _access)


def _access(stream: Stream) -> list[Any]:
    return stream.struct("types.AccessTuple", _ACCESS)


def _authorizations(stream: Stream) -> list[Authorization]:
    return stream.items("[]types.SetCodeAuthorization", _authorization)


def _authorization(stream: Stream) -> Authorization:
    return Authorization(*stream.struct("types.SetCodeAuthorization", _AUTHORIZATION))


def _one_blob(stream: Stream) -> bytes:
    return stream.fixed(BLOB_BYTES, "kzg4844.Blob")


def _commitment(stream: Stream) -> bytes:
    return stream.fixed(48, "kzg4844.Commitment")


def _proof(stream: Stream) -> bytes:
    return stream.fixed(48, "kzg4844.Proof")


def _blobs(stream: Stream) -> list[bytes]:
    return stream.items("[]kzg4844.Blob", _one_blob)


def _commitments(stream: Stream) -> list[bytes]:
    return stream.items("[]kzg4844.Commitment", _commitment)


def _proofs(stream: Stream) -> list[bytes]:
    return stream.items("[]kzg4844.Proof", _proof)


def _blob_transaction(stream: Stream) -> tuple[int, int, list[Any]]:
    """Return the offsets of the inner transaction, and its values."""
    start = stream.position
    values = stream.struct(_BLOB_NAME, _BLOB_MEMBERS)
    return start, stream.position, values


# Members


_ACCESS: Members = (("Address", _address), ("StorageKeys", _hashes))

_AUTHORIZATION: Members = (
    ("ChainID", Stream.uint256),
    ("Address", _address),
    ("Nonce", _uint64),
    ("V", lambda stream: stream.uint(8)),
    ("R", Stream.uint256),
    ("S", Stream.uint256),
)

_Read = Callable[[Stream], Any]


def _signature(number: _Read) -> Members:
    return (("V", number), ("R", number), ("S", number))


_LEGACY_MEMBERS: Members = (
    ("Nonce", _uint64),
    ("GasPrice", Stream.big_int),
    ("Gas", _uint64),
    ("To", _to),
    ("Value", Stream.big_int),
    ("Data", _data),
    *_signature(Stream.big_int),
)

_ACCESS_LIST_MEMBERS: Members = (
    ("ChainID", Stream.big_int),
    *_LEGACY_MEMBERS[:6],
    ("AccessList", _access_list),
    *_signature(Stream.big_int),
)


def _dynamic_fee_members(number: _Read, to: _Read, *more: tuple[str, _Read]) -> Members:
    """Return the members of types 2 to 4. more: the additional members of one type."""
    return (
        ("ChainID", number),
        ("Nonce", _uint64),
        ("GasTipCap", number),
        ("GasFeeCap", number),
        ("Gas", _uint64),
        ("To", to),
        ("Value", number),
        ("Data", _data),
        ("AccessList", _access_list),
        *more,
        *_signature(number),
    )


_DYNAMIC_FEE_MEMBERS = _dynamic_fee_members(Stream.big_int, _to)
_SET_CODE_MEMBERS = _dynamic_fee_members(
    Stream.uint256, _address, ("AuthList", _authorizations)
)
_BLOB_NAME = "types.BlobTx"
_BLOB_MEMBERS = _dynamic_fee_members(
    Stream.uint256, _address, ("BlobFeeCap", Stream.uint256), ("BlobHashes", _hashes)
)

_SIDECAR: Members = (
    ("Blobs", _blobs),
    ("Commitments", _commitments),
    ("Proofs", _proofs),
)
_WITH_SIDECAR_0: Members = (("BlobTx", _blob_transaction), *_SIDECAR)
_WITH_SIDECAR_1: Members = (
    ("BlobTx", _blob_transaction),
    ("Version", lambda stream: stream.uint(8)),
    *_SIDECAR,
)


# Transactions


def _legacy(raw: bytes, values: list[Any]) -> Transaction:
    nonce, price, gas, to, value, data, v, r, s = values
    _check_sizes(v, r, s)
    chain_id, y_parity = None, v - _LEGACY_OFFSET
    if v not in _UNPROTECTED:
        # geth subtracts in 64 bits, unless v is larger.
        offset = v - _EIP155_OFFSET
        chain_id, y_parity = divmod(offset % 2**64 if v < 2**64 else offset, 2)
    return Transaction(
        LEGACY,
        chain_id,
        nonce,
        price,
        price,
        gas,
        to,
        value,
        data,
        v,
        y_parity,
        r,
        s,
        raw,
    )


def _check_sizes(*values: int) -> None:
    """Check a chain id and the values of a signature. Raises: RlpFault."""
    if max(values) >= 2**256:
        raise RlpFault("transaction chain id or signature value exceeds 256 bits")


def _access_list_transaction(raw: bytes, values: list[Any]) -> Transaction:
    # The gas price is both the fee and the priority fee.
    return _dynamic_fee(raw, [*values[:2], values[2], *values[2:]])


def _dynamic_fee(raw: bytes, values: list[Any]) -> Transaction:
    """Return a transaction with the common members of types 1 to 4."""
    chain_id, nonce, tip, fee, gas, to, value, data, accesses = values[:9]
    v, r, s = values[-3:]
    _check_sizes(chain_id, v, r, s)
    access_list = tuple(
        (address, tuple(map(int.from_bytes, keys))) for address, keys in accesses
    )
    return Transaction(
        raw[0],
        chain_id,
        nonce,
        tip,
        fee,
        gas,
        to,
        value,
        data,
        v,
        v,
        r,
        s,
        raw,
        access_list,
    )


def _set_code(raw: bytes, values: list[Any]) -> Transaction:
    transaction = _dynamic_fee(raw, values)
    transaction.authorization_list = tuple(values[9])
    return transaction


def _blob(raw: bytes) -> Submission:
    """Decode a blob transaction, with or without its sidecar."""
    is_list, first, end = _split(raw, 1, len(raw))
    if not is_list:
        raise RlpFault("rlp: expected List")
    has_sidecar, _, second = _split(raw, first, end)
    if not has_sidecar:
        values = decode_struct(raw, 1, _BLOB_NAME, _BLOB_MEMBERS)
        return Submission(_blob_from(raw, values), raw)
    is_versioned = not _split(raw, second, end)[0]
    if is_versioned:
        name, members = "types.blobTxWithBlobsV1", _WITH_SIDECAR_1
    else:
        name, members = "types.blobTxWithBlobsV0", _WITH_SIDECAR_0
    inner, *rest = decode_struct(raw, 1, name, members)
    version = rest.pop(0) if is_versioned else 0
    if is_versioned and version != 1:
        raise RlpFault(f"unsupported blob tx version {version}")
    start, stop, values = inner
    transaction = _blob_from(raw[:1] + raw[start:stop], values)
    return Submission(transaction, raw, Sidecar(version, *rest))


def _split(raw: bytes, start: int, end: int) -> tuple[bool, int, int]:
    """Return whether a value is a list, and the offsets of its payload.

    Raises: RlpFault with the texts of geth's rlp/raw.go, which are not those of Stream.
    """
    if start == end:
        raise RlpFault(_CUT_SHORT)
    try:
        return rlp.span(raw, start, end)
    except rlp.RlpError:
        raise RlpFault(_why_not(raw[start:end])) from None


def _why_not(data: bytes) -> str:
    """Return geth's error text for bytes that do not begin with a valid value."""
    prefix = data[0]
    if prefix == 0x81:
        return _SIZE if len(data) > 1 else TOO_LARGE_FOR_INPUT
    digits = (prefix - 0xB7) if prefix < 0xC0 else (prefix - 0xF7)
    if digits > 0:
        length = data[1 : 1 + digits]
        if len(length) < digits:
            return _CUT_SHORT
        if not length[0] or int.from_bytes(length) < 56:
            return _SIZE
    return TOO_LARGE_FOR_INPUT


def _blob_from(raw: bytes, values: list[Any]) -> Transaction:
    transaction = _dynamic_fee(raw, values)
    transaction.max_fee_per_blob_gas = values[9]
    transaction.blob_versioned_hashes = tuple(values[10])
    return transaction


_Build = Callable[[bytes, list[Any]], Transaction]

_TYPES: dict[int, tuple[str, Members, _Build]] = {
    ACCESS_LIST: (
        "types.AccessListTx",
        _ACCESS_LIST_MEMBERS,
        _access_list_transaction,
    ),
    DYNAMIC_FEE: ("types.DynamicFeeTx", _DYNAMIC_FEE_MEMBERS, _dynamic_fee),
    SET_CODE: ("types.SetCodeTx", _SET_CODE_MEMBERS, _set_code),
}
"""Transaction type → Go name, members, and the function that builds the transaction."""
