"""Transactions of all types, as contained in blocks.

Sources: https://eips.ethereum.org/EIPS/eip-155 (chain id in legacy signatures), -2718
(envelope), -2930 (access lists), -1559 (dynamic fees), -4844 (blobs), -7702
(authorisations). Blocks do not contain blob sidecars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from eth_typing import Address, Hash32
from eth_utils.exceptions import ValidationError

from evm import rlp
from evm.rlp import (
    Decoded,
    RlpError,
    decode_bytes,
    decode_int,
    decode_list,
    decode_string,
)
from evm.signatures import CURVE_ORDER, keccak, recover_address

LEGACY = 0
ACCESS_LIST = 1
DYNAMIC_FEE = 2
BLOB = 3
SET_CODE = 4

GAS_PER_BLOB = 131_072
"""Blob gas of one blob."""
CELLS_PER_BLOB = 128
"""Cells into which an extended blob is divided (EIP-7594)."""

CREATE_ADDRESS = Address(b"")
"""Value of `to` in a transaction that creates a contract."""

AUTHORIZATION_MAGIC = b"\x05"
"""An authority signs keccak(MAGIC ‖ rlp([chain id, address, nonce]))."""

_EIP155_OFFSET = 35
_LEGACY_OFFSET = 27
MAX_NONCE = 2**64 - 1
"""A nonce that can't be incremented (EIP-2681)."""

AccessList = tuple[tuple[Address, tuple[int, ...]], ...]
"""Addresses, each with its slots."""


@dataclass(frozen=True, slots=True)
class Authorization:
    """An account's signed delegation to a contract's code (EIP-7702).

    An invalid authorization does not make its transaction invalid.
    """

    chain_id: int
    """0: any chain."""
    address: Address
    """The account whose code is to be run. The zero address ends a delegation."""
    nonce: int
    y_parity: int
    r: int
    s: int

    def validate(self, chain_id: int) -> None:
        """Check all rules that do not depend on the state.

        Raises: eth_utils.ValidationError.
        """
        if self.chain_id not in (0, chain_id):
            raise ValidationError(f"authorization is for chain {self.chain_id}")
        if self.nonce >= MAX_NONCE:
            raise ValidationError("authorization nonce is 2**64 - 1")
        if self.s > CURVE_ORDER // 2:
            raise ValidationError("authorization has a high s")

    def authority(self) -> Address:
        """Return the signer's address.

        Raises: eth_utils.ValidationError if the signature is invalid.
        """
        return recover_address(self.signing_hash(), self.y_parity, self.r, self.s)

    def signing_hash(self) -> bytes:
        """Return the 32 bytes that the authority signs."""
        return keccak(
            AUTHORIZATION_MAGIC
            + rlp.encode(
                [
                    rlp.encode_int(self.chain_id),
                    self.address,
                    rlp.encode_int(self.nonce),
                ]
            )
        )


@dataclass(slots=True, eq=False)
class Transaction:
    """A signed transaction. Fields that its type lacks are zero or empty, except fees."""

    type: int
    chain_id: int | None
    """None for a legacy transaction that is valid on every chain."""
    nonce: int
    max_priority_fee_per_gas: int
    """Wei. In types 0 and 1, it equals the gas price."""
    max_fee_per_gas: int
    """Wei. In types 0 and 1, it equals the gas price."""
    gas: int
    """The gas limit."""
    to: Address
    """Receiver, `CREATE_ADDRESS` for a creation."""
    value: int
    """Wei."""
    data: bytes
    v: int
    """27, 28 or (EIP-155) 35 + 2 chain_id + parity. From type 1 on: the parity."""
    y_parity: int
    r: int
    s: int
    raw: bytes
    """The EIP-2718 encoding, which is hashed and stored."""
    access_list: AccessList = ()
    max_fee_per_blob_gas: int = 0
    """Wei."""
    blob_versioned_hashes: tuple[Hash32, ...] = ()
    authorization_list: tuple[Authorization, ...] = ()
    intrinsic_gas: int = 0
    """Gas charged before execution. It depends on the fork, so the executor sets it.
    See `evm.intrinsic`."""
    _hash: Hash32 | None = None
    _sender: Address | None = None

    @property
    def blob_gas(self) -> int:
        """The transaction's blob gas, which is priced separately from gas."""
        return GAS_PER_BLOB * len(self.blob_versioned_hashes)

    @property
    def hash(self) -> Hash32:
        """The transaction's hash: the Keccak-256 of `raw`."""
        if self._hash is None:
            self._hash = Hash32(keccak(self.raw))
        return self._hash

    @property
    def sender(self) -> Address:
        """The signer's address, recovered once in about 35 µs (see `recover_senders`).

        Raises: eth_utils.ValidationError if the signature is invalid.
        """
        if self._sender is None:
            self._sender = recover_address(
                self.signing_hash(), self.y_parity, self.r, self.s
            )
        return self._sender

    def signing_hash(self) -> bytes:
        """Return the 32-byte hash that the sender has signed.

        It is computed from the transaction's encoding without the signature at its end.
        """
        raw = self.raw
        prefix = raw[:1] if self.type else b""
        _, start, end = rlp.span(raw, len(prefix), len(raw))
        payload = raw[start : end - _encoded_length(self.v, self.r, self.s)]
        if self.type == LEGACY and self.chain_id is not None:
            payload += rlp.encode(rlp.encode_int(self.chain_id)) + b"\x80\x80"
        return keccak(prefix + rlp.wrap_list(payload))


def recover_senders(transactions: Iterable[Transaction]) -> None:
    """Recover and cache the senders of transactions.

    libsecp256k1 runs without the GIL, so a thread can do this during the execution of
    earlier blocks. After each transaction, the thread waits for the GIL for up to
    `sys.getswitchinterval()`. The default of 5 ms is too long for this, and 200 µs is
    suitable. For invalid signatures, `sender` raises the error later.
    """
    for transaction in transactions:
        with suppress(ValidationError):
            _ = transaction.sender


def _encoded_length(*values: int) -> int:
    """Return the total length of the RLP of small integers (below 2**440)."""
    return sum(
        1 if value < 0x80 else 1 + (value.bit_length() + 7) // 8 for value in values
    )


# Decoding


def decode_transaction(raw: bytes) -> Transaction:
    """Decode a transaction from its EIP-2718 encoding.

    Raises: RlpError if the bytes are not exactly one transaction of types 0–4. Rules
        that depend on the fork or the chain are not checked.
    """
    if not raw:
        raise RlpError("an empty transaction")
    if raw[0] >= 0xC0:
        return _decode_legacy(raw, _fields(raw, 9))
    decoder = _DECODERS.get(raw[0])
    if decoder is None:
        raise RlpError(f"transaction type {raw[0]} is unknown")
    count, decode_fields = decoder
    return decode_fields(raw, _fields(raw[1:], count))


def _fields(payload: bytes, count: int) -> list[Decoded]:
    fields = rlp.decode(payload)
    if not isinstance(fields, list) or len(fields) != count:
        raise RlpError(f"a transaction of this type is a list of {count} fields")
    return fields


def _decode_legacy(raw: bytes, fields: list[Decoded]) -> Transaction:
    nonce, gas_price, gas, to, value, data, v_field, r, s = fields
    v = decode_int(v_field)
    if v >= _EIP155_OFFSET:
        chain_id, y_parity = divmod(v - _EIP155_OFFSET, 2)
    elif v in (_LEGACY_OFFSET, _LEGACY_OFFSET + 1):
        chain_id, y_parity = None, v - _LEGACY_OFFSET
    else:
        raise RlpError(f"signature v is {v}")
    price = decode_int(gas_price)
    return Transaction(
        LEGACY,
        chain_id,
        decode_int(nonce, 8),
        price,
        price,
        decode_int(gas, 8),
        _decode_to(to),
        decode_int(value),
        decode_string(data),
        v,
        y_parity,
        _decode_scalar(r),
        _decode_scalar(s),
        raw,
    )


def _decode_access_list_transaction(raw: bytes, fields: list[Decoded]) -> Transaction:
    # Both fees of the dynamic-fee form are the gas price.
    return _decode_dynamic_fee(raw, [*fields[:2], fields[2], *fields[2:]])


def _decode_dynamic_fee(raw: bytes, fields: list[Decoded]) -> Transaction:
    """Decode the common fields of types 1 to 4: the first nine and the last three."""
    chain_id, nonce, priority_fee, fee, gas, to, value, data, accesses = fields[:9]
    y_parity, r, s = fields[-3:]
    parity = decode_int(y_parity)
    if parity > 1:
        raise RlpError(f"signature y parity is {parity}")
    return Transaction(
        raw[0],
        decode_int(chain_id),
        decode_int(nonce, 8),
        decode_int(priority_fee),
        decode_int(fee),
        decode_int(gas, 8),
        _decode_to(to),
        decode_int(value),
        decode_string(data),
        parity,
        parity,
        _decode_scalar(r),
        _decode_scalar(s),
        raw,
        _decode_access_list(accesses),
    )


def _decode_blob(raw: bytes, fields: list[Decoded]) -> Transaction:
    transaction = _decode_dynamic_fee(raw, fields)
    if transaction.to == CREATE_ADDRESS:
        raise RlpError("a blob transaction can't create a contract")
    transaction.max_fee_per_blob_gas = decode_int(fields[9])
    transaction.blob_versioned_hashes = tuple(
        Hash32(decode_bytes(blob_hash, 32)) for blob_hash in decode_list(fields[10])
    )
    return transaction


def _decode_set_code(raw: bytes, fields: list[Decoded]) -> Transaction:
    transaction = _decode_dynamic_fee(raw, fields)
    if transaction.to == CREATE_ADDRESS:
        raise RlpError("a set-code transaction can't create a contract")
    transaction.authorization_list = tuple(
        _decode_authorization(item) for item in decode_list(fields[9])
    )
    return transaction


_DECODERS: dict[int, tuple[int, Callable[[bytes, list[Decoded]], Transaction]]] = {
    ACCESS_LIST: (11, _decode_access_list_transaction),
    DYNAMIC_FEE: (12, _decode_dynamic_fee),
    BLOB: (14, _decode_blob),
    SET_CODE: (13, _decode_set_code),
}
"""Transaction type → number of fields, and the decoder."""


def _decode_to(field: Decoded) -> Address:
    return CREATE_ADDRESS if field == b"" else Address(decode_bytes(field, 20))


def _decode_scalar(field: Decoded) -> int:
    value = decode_int(field)
    if not 0 < value < CURVE_ORDER:
        raise RlpError("signature values out of range")
    return value


def _decode_access_list(field: Decoded) -> AccessList:
    if field == []:
        return ()
    entries = []
    for entry in decode_list(field):
        if not isinstance(entry, list) or len(entry) != 2:
            raise RlpError("an access list entry is an address and a list of slots")
        address, slots = entry
        entries.append(
            (
                Address(decode_bytes(address, 20)),
                tuple(
                    int.from_bytes(decode_bytes(slot, 32), "big")
                    for slot in decode_list(slots)
                ),
            )
        )
    return tuple(entries)


def _decode_authorization(item: Decoded) -> Authorization:
    if not isinstance(item, list) or len(item) != 6:
        raise RlpError("an authorization is a list of 6 fields")
    chain_id, address, nonce, y_parity, r, s = item
    return Authorization(
        chain_id=decode_int(chain_id),
        address=Address(decode_bytes(address, 20)),
        nonce=decode_int(nonce, 8),
        y_parity=decode_int(y_parity, 1),
        r=decode_int(r),
        s=decode_int(s),
    )
