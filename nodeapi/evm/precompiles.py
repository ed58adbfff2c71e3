"""Precompiled contracts where py-evm's are wrong, slow, or not there.

A precompile is a function of the frame that calls it: it consumes gas, reads
`msg.data`, and sets `output`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import eth
from ckzg import (  # type: ignore[import-not-found]  # a C extension without types
    load_trusted_setup,
    verify_kzg_proof,
)
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from eth.exceptions import VMError
from eth.vm.forks.berlin.computation import BERLIN_PRECOMPILES

Precompile = Callable[[Any], Any]


def _address(number: int) -> bytes:
    return number.to_bytes(20, "big")


MODEXP_ADDRESS = _address(0x05)
POINT_EVALUATION_ADDRESS = _address(0x0A)
P256_VERIFY_ADDRESS = _address(0x100)

# Modular exponentiation


def _number(data: bytes, start: int, size: int) -> int:
    """Return a big-endian number in data that goes on with zeros for ever."""
    return int.from_bytes(data[start : start + size].ljust(size, b"\x00"), "big")


def _lengths(data: bytes) -> tuple[int, int, int]:
    """Return the lengths in bytes of base, exponent and modulus."""
    return _number(data, 0, 32), _number(data, 32, 32), _number(data, 64, 32)


def _exponent_bits(data: bytes, multiplier: int) -> int:
    """Return the price's measure of how long the exponent is.

    multiplier: what each byte after the first 32 counts.
    """
    base_length, exponent_length, _ = _lengths(data)
    head = _number(data, 96 + base_length, min(exponent_length, 32))
    tail = max(exponent_length - 32, 0)
    return multiplier * tail + max(head.bit_length() - 1, 0)


def byzantium_modexp_gas(data: bytes) -> int:
    """Return the gas of EIP-198."""
    base_length, _, modulus_length = _lengths(data)
    x = max(base_length, modulus_length)
    if x <= 64:
        complexity = x**2
    elif x <= 1024:
        complexity = x**2 // 4 + 96 * x - 3072
    else:
        complexity = x**2 // 16 + 480 * x - 199_680
    return complexity * max(_exponent_bits(data, 8), 1) // 20


def berlin_modexp_gas(data: bytes) -> int:
    """Return the gas of EIP-2565."""
    base_length, _, modulus_length = _lengths(data)
    words = (max(base_length, modulus_length) + 7) // 8
    return max(200, words**2 * max(_exponent_bits(data, 8), 1) // 3)


def osaka_modexp_gas(data: bytes) -> int:
    """Return the gas of EIP-7883."""
    base_length, _, modulus_length = _lengths(data)
    longest = max(base_length, modulus_length)
    words = (longest + 7) // 8
    complexity = 2 * words**2 if longest > 32 else 16
    return max(500, complexity * max(_exponent_bits(data, 16), 1))


def modexp(price: Callable[[bytes], int], max_length: int | None = None) -> Precompile:
    """Return the precompile base ** exponent % modulus at a fork's price.

    max_length: bytes that base, exponent and modulus may each have (EIP-7823).
    """

    def precompile(frame: Any) -> Any:
        data = frame.msg.data_as_bytes
        lengths = base_length, exponent_length, modulus_length = _lengths(data)
        if max_length is not None and max(lengths) > max_length:
            raise VMError("MODEXP input is too long")
        frame.consume_gas(price(data), "MODEXP precompile")
        if base_length == 0 and modulus_length == 0:
            # The price is the minimum then, however long the exponent claims to be.
            return frame
        exponent_start = 96 + base_length
        modulus_start = exponent_start + exponent_length
        modulus = _number(data, modulus_start, modulus_length)
        result = 0
        if modulus:
            base = _number(data, 96, base_length)
            exponent = _number(data, exponent_start, exponent_length)
            result = pow(base, exponent, modulus)
        frame.output = result.to_bytes(modulus_length, "big")
        return frame

    return precompile


# Blobs

POINT_EVALUATION_GAS = 50_000
FIELD_ELEMENTS_PER_BLOB = 4096
BLS_MODULUS = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


@cache
def _trusted_setup() -> Any:
    """Load the ceremony's points once; it takes most of a second."""
    path = Path(eth.__file__).parent / "_utils" / "kzg_trusted_setup.txt"
    return load_trusted_setup(str(path), 0)


def point_evaluation(frame: Any) -> Any:
    """Check that a blob's polynomial takes a value at a point (EIP-4844)."""
    frame.consume_gas(POINT_EVALUATION_GAS, "Point evaluation precompile")
    data = frame.msg.data_as_bytes
    if len(data) != 192:
        raise VMError("Point evaluation: input is not 192 bytes long")
    versioned_hash, z, y = data[:32], data[32:64], data[64:96]
    commitment, proof = data[96:144], data[144:]
    if b"\x01" + hashlib.sha256(commitment).digest()[1:] != versioned_hash:
        raise VMError("Point evaluation: the hash is not the commitment's")
    try:
        is_proved = verify_kzg_proof(commitment, z, y, proof, _trusted_setup())
    except (RuntimeError, ValueError) as error:
        raise VMError("Point evaluation: malformed point or number") from error
    if not is_proved:
        raise VMError("Point evaluation: wrong proof")
    frame.output = FIELD_ELEMENTS_PER_BLOB.to_bytes(32, "big") + BLS_MODULUS.to_bytes(
        32, "big"
    )
    return frame


# secp256r1

P256_VERIFY_GAS = 6900
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def is_p256_signature(digest: bytes, r: int, s: int, x: int, y: int) -> bool:
    """Return whether (r, s) is the signature of a 32-byte digest under (x, y).

    Source: https://eips.ethereum.org/EIPS/eip-7951
    """
    if not (0 < r < P256_ORDER and 0 < s < P256_ORDER):
        return False
    try:
        key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        key.verify(
            utils.encode_dss_signature(r, s),
            digest,
            ec.ECDSA(utils.Prehashed(SHA256())),
        )
    except (ValueError, InvalidSignature):
        # ValueError: a coordinate beyond the field, or a point off the curve.
        return False
    return True


def p256_verify(frame: Any) -> Any:
    """Output the number 1 for a valid secp256r1 signature, nothing for another."""
    frame.consume_gas(P256_VERIFY_GAS, "P256VERIFY precompile")
    data = frame.msg.data_as_bytes
    if len(data) == 160:
        numbers = (_number(data, start, 32) for start in range(32, 160, 32))
        if is_p256_signature(data[:32], *numbers):
            frame.output = (1).to_bytes(32, "big")
    return frame


def improved_precompiles(precompiles: dict[bytes, Precompile]) -> dict[bytes, Any]:
    """Return a fork's precompiles with ours in the place of py-evm's.

    py-evm's MODEXP takes 0 ** 0 for 0 when the base has no bytes; its point
    evaluation loads the trusted setup in every call.
    """
    improved = dict(precompiles)
    if MODEXP_ADDRESS in improved:
        is_berlin = improved[MODEXP_ADDRESS] is BERLIN_PRECOMPILES[MODEXP_ADDRESS]
        price = berlin_modexp_gas if is_berlin else byzantium_modexp_gas
        improved[MODEXP_ADDRESS] = modexp(price)
    if POINT_EVALUATION_ADDRESS in improved:
        improved[POINT_EVALUATION_ADDRESS] = point_evaluation
    return improved
