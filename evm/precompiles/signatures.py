"""Signatures on secp256k1, with libsecp256k1, and on secp256r1 (EIP-7951), with OpenSSL."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from eth_utils.exceptions import ValidationError

from evm.precompiles.contract import Data, number, prefix
from evm.signatures import recover_address

ECRECOVER_GAS = 3000


def ecrecover(data: Data) -> bytes:
    """Return the signer's address padded to 32 bytes, or b"" for an invalid signature.

    data: the hash, v (27 or 28), r and s, 32 bytes each, padded with zeros.
    """
    v, r, s = (number(data, start, 32) for start in (32, 64, 96))
    try:
        address = recover_address(prefix(data, 32), v - 27, r, s)
    except ValidationError:
        return b""
    return address.rjust(32, b"\x00")


P256_GAS = 6900
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
FIELD = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF

_LENGTH = 160
_SCHEME = ec.ECDSA(utils.Prehashed(SHA256()))


def p256_verify(data: Data) -> bytes:
    """Return the number 1 for a valid signature, otherwise b"".

    data: the digest, r, s and the public key's x and y, 32 bytes each.
    """
    if len(data) != _LENGTH:
        return b""
    r, s, x, y = (number(data, start, 32) for start in range(32, _LENGTH, 32))
    return (
        (1).to_bytes(32, "big") if is_signature(bytes(data[:32]), r, s, x, y) else b""
    )


def is_signature(digest: bytes, r: int, s: int, x: int, y: int) -> bool:
    """Return whether (r, s) is the signature of a 32-byte digest under (x, y)."""
    if not (0 < r < ORDER and 0 < s < ORDER):
        return False
    if x >= FIELD or y >= FIELD:
        return False  # OpenSSL would reduce the coordinates modulo p.
    try:
        key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        key.verify(utils.encode_dss_signature(r, s), digest, _SCHEME)
    except (ValueError, InvalidSignature):
        # ValueError: the point is not on the curve.
        return False
    return True
