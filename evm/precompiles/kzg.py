"""Point evaluation of a blob's polynomial (EIP-4844), with c-kzg."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import eth
from ckzg import (  # type: ignore[import-not-found]  # a C extension without types
    load_trusted_setup,
    verify_kzg_proof,
)
from py_arkworks_bls12381 import G1Point

from evm.precompiles.bls12_381 import FIELD
from evm.precompiles.contract import Data, PrecompileError

GAS = 50_000
FIELD_ELEMENTS_PER_BLOB = 4096
SCALAR_FIELD = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""The order of BLS12-381's groups, and the prime that values are below."""

_OUTPUT = FIELD_ELEMENTS_PER_BLOB.to_bytes(32, "big") + SCALAR_FIELD.to_bytes(32, "big")


@cache
def _trusted_setup() -> Any:
    """Load the trusted setup once. This takes most of a second."""
    path = Path(eth.__file__).parent / "_utils" / "kzg_trusted_setup.txt"
    return load_trusted_setup(str(path), 0)


def point_evaluation(data: Data) -> bytes:
    """Verify a KZG proof. Return the number of field elements and the field's modulus.

    data: 192 bytes: versioned hash, point z, value y, commitment, proof.

    Raises: PrecompileError if the length, the versioned hash or the proof is invalid.
    """
    if len(data) != 192:
        raise PrecompileError("invalid input length")
    data = bytes(data)
    versioned_hash, z, y = data[:32], data[32:64], data[64:96]
    commitment, proof = data[96:144], data[144:]
    if b"\x01" + hashlib.sha256(commitment).digest()[1:] != versioned_hash:
        raise PrecompileError("mismatched versioned hash")
    try:
        is_proved = verify_kzg_proof(commitment, z, y, proof, _trusted_setup())
    except (RuntimeError, ValueError):
        is_proved = False
    if not is_proved:
        raise PrecompileError(f"error verifying kzg proof: {_failure(data)}")
    return _OUTPUT


def _failure(data: bytes) -> str:
    """Return geth's message for a rejected proof.

    The library only reports that an argument is malformed.

    Source: go-eth-kzg v1.5.0, verify.go; gnark-crypto v0.18.1, ecc/bls12-381/marshal.go
    """
    if any(
        int.from_bytes(scalar, "big") >= SCALAR_FIELD
        for scalar in (data[64:96], data[32:64])
    ):
        return "scalar is not canonical when interpreted as a big integer in big-endian"
    points = data[96:144], data[144:]
    found = (reason for reason in map(_point_failure, points) if reason)
    return next(found, "can't verify opening proof")


def _point_failure(point: bytes) -> str | None:
    """Return why 48 bytes are not a compressed G1 point, or None if they are one."""
    flags, x = point[0] >> 5, int.from_bytes(point, "big") % 2**381
    if flags in (0b000, 0b010):  # Flags of an uncompressed point, which is longer.
        return "short buffer"
    if flags in (0b001, 0b011, 0b111):
        return "invalid point encoding"
    if flags == 0b110:
        return "invalid infinity point encoding" if x else None
    if x >= FIELD:
        return "invalid fp.Element encoding"
    if pow(x**3 + 4, (FIELD - 1) // 2, FIELD) == FIELD - 1:
        return "invalid compressed coordinate: square root doesn't exist"
    if not G1Point.from_compressed_bytes_unchecked(point).is_in_subgroup():
        return "invalid point: subgroup check failed"
    return None
