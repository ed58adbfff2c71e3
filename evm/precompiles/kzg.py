"""Point evaluation of a blob's polynomial (EIP-4844)."""

from __future__ import annotations

import hashlib

from evm.kzg import FIELD_ELEMENTS_PER_BLOB, SCALAR_FIELD, InvalidProof, verify_proof
from evm.precompiles.contract import Data, PrecompileError

GAS = 50_000

_OUTPUT = FIELD_ELEMENTS_PER_BLOB.to_bytes(32, "big") + SCALAR_FIELD.to_bytes(32, "big")


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
        verify_proof(commitment, z, y, proof)
    except InvalidProof as error:
        raise PrecompileError(f"error verifying kzg proof: {error}") from None
    return _OUTPUT
