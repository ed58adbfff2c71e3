"""Transactions and receipts: the members of their JSON objects, from their RLP.

Source: EIP-155, EIP-2718, EIP-2930, EIP-1559, EIP-4844, EIP-7702
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rlp
from coincurve import PublicKey

from portcullis.merkle import keccak

Members = dict[str, Any]
"""Members of a JSON object. Numbers are `0x…` quantities, and bytes are `0x…` data."""

_NAMES = {
    0: "nonce gasPrice gas to value input",
    1: "chainId nonce gasPrice gas to value input accessList",
    2: "chainId nonce maxPriorityFeePerGas maxFeePerGas gas to value input accessList",
    3: "chainId nonce maxPriorityFeePerGas maxFeePerGas gas to value input accessList"
    " maxFeePerBlobGas blobVersionedHashes",
    4: "chainId nonce maxPriorityFeePerGas maxFeePerGas gas to value input accessList"
    " authorizationList",
}
"""The fields of each transaction type before the signature, in the order of the RLP."""

_AUTHORIZATION = ["chainId", "address", "nonce", "yParity", "r", "s"]
_BLOB_GAS = 131_072


def transaction_members(raw: bytes, base_fee: int | None) -> Members:
    """Return a transaction's own members, with `hash`, `from` and its effective price.

    raw: as EIP-2718 encodes it. base_fee: of its block, in wei, None before London.

    Raises: ValueError if it is malformed.
    """
    kind = raw[0] if raw[0] < 0x80 else 0
    if kind not in _NAMES:
        raise ValueError(f"unknown transaction type {kind}")
    fields = rlp.decode(raw[1:] if kind else raw)
    names = _NAMES[kind].split()
    if len(fields) != len(names) + 3:
        raise ValueError(f"{len(fields)} fields in a transaction of type {kind}")
    members = {
        name: _member(name, value) for name, value in zip(names, fields, strict=False)
    }
    signature = [int.from_bytes(value, "big") for value in fields[-3:]]
    members |= _signed_members(kind, fields[:-3], signature)
    if kind >= 2:
        tip, limit = int(members["maxPriorityFeePerGas"], 16), members["maxFeePerGas"]
        price = int(limit, 16)
        members["gasPrice"] = hex(
            price if base_fee is None else min(base_fee + tip, price)
        )
    return {**members, "type": hex(kind), "hash": _data(keccak(raw))}


def receipt_members(raw: bytes) -> Members:
    """Return a receipt's own members.

    raw: as EIP-2718 encodes it. Logs have their own members only.
    """
    kind = raw[0] if raw[0] < 0x80 else 0
    outcome, gas, bloom, logs = rlp.decode(raw[1:] if kind else raw)
    members: Members = {
        "type": hex(kind),
        "cumulativeGasUsed": _quantity(gas),
        "logsBloom": _data(bloom),
        "logs": [
            {
                "address": _data(address),
                "topics": [_data(topic) for topic in topics],
                "data": _data(data),
            }
            for address, topics, data in logs
        ],
    }
    if len(outcome) == 32:
        members["root"] = _data(outcome)
    else:
        members["status"] = _quantity(outcome)
    return members


def blob_gas(transaction: Members) -> int:
    """Return the blob gas of a transaction."""
    return _BLOB_GAS * len(transaction.get("blobVersionedHashes", ()))


def created_address(transaction: Members) -> str | None:
    """Return the address of the contract that a transaction creates, or None."""
    if transaction["to"] is not None:
        return None
    sender = bytes.fromhex(transaction["from"][2:])
    return _data(keccak(rlp.encode([sender, int(transaction["nonce"], 16)]))[12:])


def _signed_members(kind: int, fields: Sequence[Any], signature: list[int]) -> Members:
    """Return the signature and the sender that has signed the fields."""
    v, r, s = signature
    members: Members = {"v": hex(v), "r": hex(r), "s": hex(s)}
    parity = v
    signed = [*fields]
    if kind:
        members["yParity"] = hex(v)
    elif v >= 35:
        chain_id, parity = divmod(v - 35, 2)
        members["chainId"] = hex(chain_id)
        signed += [chain_id, 0, 0]
    else:
        parity = v - 27
    message = (bytes([kind]) if kind else b"") + rlp.encode(signed)
    return {**members, "from": _data(_signer(keccak(message), parity, r, s))}


def _signer(message_hash: bytes, parity: int, r: int, s: int) -> bytes:
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([parity])
    key = PublicKey.from_signature_and_message(signature, message_hash, None)
    return keccak(key.format(compressed=False)[1:])[12:]


def _member(name: str, value: Any) -> Any:
    """Return a field of a transaction as JSON."""
    if name == "to":
        return _data(value) if value else None
    if name == "input":
        return _data(value)
    if name == "accessList":
        return [
            {"address": _data(address), "storageKeys": [_data(key) for key in keys]}
            for address, keys in value
        ]
    if name == "blobVersionedHashes":
        return [_data(each) for each in value]
    if name == "authorizationList":
        return [
            {
                part: _data(item) if part == "address" else _quantity(item)
                for part, item in zip(_AUTHORIZATION, each, strict=True)
            }
            for each in value
        ]
    return _quantity(value)


def _data(value: bytes) -> str:
    return "0x" + value.hex()


def _quantity(value: bytes) -> str:
    return hex(int.from_bytes(value, "big"))
