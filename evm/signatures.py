"""secp256k1 signatures, and the recovery of their signers' addresses."""

from __future__ import annotations

from coincurve import PrivateKey, PublicKey
from eth_typing import Address
from eth_utils.exceptions import ValidationError
from sha3 import keccak_256

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""n of secp256k1: signatures' r and s lie between 1 and n − 1."""


def keccak(data: bytes) -> bytes:
    """Return the 32 bytes of keccak-256."""
    digest: bytes = keccak_256(data).digest()
    return digest


def recover_address(message_hash: bytes, y_parity: int, r: int, s: int) -> Address:
    """Return the address that has signed a hash.

    Raises: eth_utils.ValidationError if the signature is invalid.
    """
    if not (0 < r < CURVE_ORDER and 0 < s < CURVE_ORDER and y_parity in (0, 1)):
        raise ValidationError("signature values out of range")
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((y_parity,))
    try:
        key = PublicKey.from_signature_and_message(signature, message_hash, None)
    except ValueError as error:
        raise ValidationError("signature of no key") from error
    return address_of(key)


def address_of(key: PublicKey) -> Address:
    """Return the address of a public key."""
    return Address(keccak(key.format(compressed=False)[1:])[12:])


def address_of_key(private_key: bytes) -> Address:
    """Return the address of a private key of 32 bytes."""
    return address_of(PrivateKey(private_key).public_key)


def sign(message_hash: bytes, private_key: bytes) -> tuple[int, int, int]:
    """Return y_parity, r and s of the deterministic signature (RFC 6979) of a hash."""
    signature = PrivateKey(private_key).sign_recoverable(message_hash, None)
    return (
        signature[64],
        int.from_bytes(signature[:32], "big"),
        int.from_bytes(signature[32:64], "big"),
    )
