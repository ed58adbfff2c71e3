"""Making transactions and authorisations, signed or with a zero signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from eth_typing import Address, Hash32

from evm import rlp
from evm.signatures import keccak, sign
from evm.transactions import (
    ACCESS_LIST,
    BLOB,
    CREATE_ADDRESS,
    LEGACY,
    SET_CODE,
    Authorization,
    Transaction,
    decode_transaction,
)


class TransactionFields(TypedDict, total=False):
    """The fields of a transaction; `nonce` and `gas` are required.

    Types 0 and 1 have `gas_price`, the others `max_priority_fee_per_gas` and
    `max_fee_per_gas`. Absent fields have the value zero or empty. Without `type` and
    `chain_id`, it is a legacy transaction that is valid on any chain. Without `to`, it
    creates a contract.
    """

    type: int
    chain_id: int
    nonce: int
    gas_price: int
    max_priority_fee_per_gas: int
    max_fee_per_gas: int
    gas: int
    to: Address
    value: int
    data: bytes
    access_list: Sequence[tuple[Address, Sequence[int]]]
    max_fee_per_blob_gas: int
    blob_versioned_hashes: Sequence[Hash32]
    authorization_list: Sequence[Authorization]


def sign_transaction(fields: TransactionFields, private_key: bytes) -> Transaction:
    """Return the transaction with its deterministic signature (RFC 6979).

    private_key: 32 bytes.

    Raises: KeyError if a required field is missing; RlpError if the fields are invalid.
    """
    if fields.get("type", LEGACY) == LEGACY:
        raw = _sign_legacy(fields, private_key)
    else:
        prefix, items = bytes((fields["type"],)), _typed_items(fields)
        signature = sign(keccak(prefix + rlp.encode(items)), private_key)
        raw = prefix + rlp.encode([*items, *map(rlp.encode_int, signature)])
    return decode_transaction(raw)


def encode_unsigned(fields: TransactionFields) -> bytes:
    """Return the EIP-2718 encoding of a transaction whose signature is zero."""
    signature = [b"", b"", b""]
    if fields.get("type", LEGACY) == LEGACY:
        return rlp.encode([*_legacy_items(fields), *signature])
    return bytes((fields["type"],)) + rlp.encode([*_typed_items(fields), *signature])


def sign_authorization(
    chain_id: int, address: Address, nonce: int, private_key: bytes
) -> Authorization:
    """Return an account's signed authorization to delegate to an address (EIP-7702)."""
    unsigned = Authorization(chain_id, address, nonce, 0, 0, 0)
    y_parity, r, s = sign(unsigned.signing_hash(), private_key)
    return Authorization(chain_id, address, nonce, y_parity, r, s)


def _sign_legacy(fields: TransactionFields, private_key: bytes) -> bytes:
    items = _legacy_items(fields)
    chain_id = fields.get("chain_id")
    if chain_id is None:
        y_parity, r, s = sign(keccak(rlp.encode(items)), private_key)
        v = 27 + y_parity
    else:
        protected = [*items, rlp.encode_int(chain_id), b"", b""]
        y_parity, r, s = sign(keccak(rlp.encode(protected)), private_key)
        v = 35 + 2 * chain_id + y_parity
    return rlp.encode([*items, *map(rlp.encode_int, (v, r, s))])


def _legacy_items(fields: TransactionFields) -> list[rlp.Item]:
    return [
        rlp.encode_int(fields["nonce"]),
        rlp.encode_int(fields.get("gas_price", 0)),
        *_call_items(fields),
    ]


def _typed_items(fields: TransactionFields) -> list[rlp.Item]:
    items: list[rlp.Item] = [
        rlp.encode_int(fields["chain_id"]),
        rlp.encode_int(fields["nonce"]),
    ]
    if fields["type"] == ACCESS_LIST:
        items.append(rlp.encode_int(fields.get("gas_price", 0)))
    else:
        items.append(rlp.encode_int(fields.get("max_priority_fee_per_gas", 0)))
        items.append(rlp.encode_int(fields.get("max_fee_per_gas", 0)))
    items += _call_items(fields)
    items.append(
        [
            [address, [slot.to_bytes(32, "big") for slot in slots]]
            for address, slots in fields.get("access_list", ())
        ]
    )
    if fields["type"] == BLOB:
        items.append(rlp.encode_int(fields.get("max_fee_per_blob_gas", 0)))
        items.append(list(fields.get("blob_versioned_hashes", ())))
    if fields["type"] == SET_CODE:
        items.append(
            [
                _authorization_items(authorization)
                for authorization in fields.get("authorization_list", ())
            ]
        )
    return items


def _call_items(fields: TransactionFields) -> list[rlp.Item]:
    return [
        rlp.encode_int(fields["gas"]),
        fields.get("to", CREATE_ADDRESS),
        rlp.encode_int(fields.get("value", 0)),
        fields.get("data", b""),
    ]


def _authorization_items(authorization: Authorization) -> list[rlp.Item]:
    return [
        rlp.encode_int(authorization.chain_id),
        authorization.address,
        rlp.encode_int(authorization.nonce),
        rlp.encode_int(authorization.y_parity),
        rlp.encode_int(authorization.r),
        rlp.encode_int(authorization.s),
    ]
