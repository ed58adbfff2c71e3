"""KZG proofs of blobs (EIP-4844) and of their cells (EIP-7594), with c-kzg.

Errors have the texts of go-eth-kzg, which is geth's default library, in the order of its
checks. c-kzg only reports that an argument is malformed or that a proof is wrong.

c-kzg holds Python's global lock: six blobs with their cells' proofs take 0.1 s, in which
no other thread of the process runs.

Sources: go-eth-kzg v1.5.0, verify.go, api_eip7594.go, errors.go;
gnark-crypto v0.18.1, ecc/bls12-381/marshal.go
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ckzg  # type: ignore[import-not-found]  # a C extension without types
from py_arkworks_bls12381 import G1Point

from evm.transactions import CELLS_PER_BLOB

BASE_FIELD = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624"
    "1eabfffeb153ffffb9feffffffffaaab",
    16,
)
"""The prime p: field elements are lower."""
FIELD_ELEMENTS_PER_BLOB = 4096
SCALAR_FIELD = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""The order of BLS12-381's groups, a prime. Field elements are below it."""

_SCALAR_BYTES = 32
_WRONG_PROOF = "can't verify opening proof"


class InvalidProof(ValueError):
    """Raised when a proof is wrong, or an argument is malformed. `str` is geth's text."""


class MalformedBlob(InvalidProof):
    """Raised when a blob has bytes that are no field element."""


def verify_proof(commitment: bytes, z: bytes, y: bytes, proof: bytes) -> None:
    """Verify that a blob's polynomial has the value y at the point z.

    commitment, proof: 48 bytes. z, y: 32 bytes.

    Raises: InvalidProof.
    """
    if not _is_valid(ckzg.verify_kzg_proof, commitment, z, y, proof):
        failures = (*map(_scalar_failure, (y, z)), *_failures((commitment, proof)))
        raise InvalidProof(_first(failures))


def verify_blob_proofs(
    blobs: Sequence[bytes], commitments: Sequence[bytes], proofs: Sequence[bytes]
) -> None:
    """Verify one proof for each blob, which has 131,072 bytes.

    Raises: InvalidProof for the first blob whose proof is invalid.
    """
    for blob, commitment, proof in zip(blobs, commitments, proofs, strict=True):
        if not _is_valid(ckzg.verify_blob_kzg_proof, blob, commitment, proof):
            points = _failures((commitment, proof))
            raise InvalidProof(_first((_blob_failure(blob), *points)))


def verify_cell_proofs(
    blobs: Sequence[bytes], commitments: Sequence[bytes], proofs: Sequence[bytes]
) -> None:
    """Verify the proofs of all cells of blobs.

    proofs: CELLS_PER_BLOB for each blob.

    Raises: MalformedBlob; InvalidProof.
    """

    def verify(setup: Any) -> bool:
        cells = [cell for blob in blobs for cell in ckzg.compute_cells(blob, setup)]
        repeated = [each for each in commitments for _ in range(CELLS_PER_BLOB)]
        indices = [*range(CELLS_PER_BLOB)] * len(blobs)
        found: bool = ckzg.verify_cell_kzg_proof_batch(
            repeated, indices, cells, list(proofs), setup
        )
        return found

    if not _is_valid(verify):
        for blob in blobs:
            _check_blob(blob)
        raise InvalidProof(_first(_failures((*commitments, *proofs))))


def verify_commitments(blobs: Sequence[bytes], commitments: Sequence[bytes]) -> None:
    """Verify that commitments are those of the blobs.

    Proofs of cells that are computed from the blobs are valid if and only if they are.

    Raises: MalformedBlob; InvalidProof.
    """
    found = [commitment_of(blob) for blob in blobs]
    if found != list(commitments):
        raise InvalidProof(_first(_failures(commitments)))


def commitment_of(blob: bytes) -> bytes:
    """Compute the commitment of a blob, 48 bytes.

    Raises: MalformedBlob.
    """
    _check_blob(blob)
    return bytes(ckzg.blob_to_kzg_commitment(blob, _trusted_setup()))


def blob_proof(blob: bytes, commitment: bytes) -> bytes:
    """Compute the proof of a well-formed blob, 48 bytes. commitment: the blob's."""
    return bytes(ckzg.compute_blob_kzg_proof(blob, commitment, _trusted_setup()))


def cell_proofs(blob: bytes) -> list[bytes]:
    """Compute the proofs of a blob's cells. This takes about 0.2 s.

    Raises: MalformedBlob.
    """
    _check_blob(blob)
    _, proofs = ckzg.compute_cells_and_kzg_proofs(blob, _trusted_setup())
    return list(proofs)


def prepare() -> None:
    """Load the trusted setup, which the first proof of a process needs otherwise.

    This takes 0.6 to 2 s, in which no other thread of the process runs.
    """
    _trusted_setup()


@cache
def _trusted_setup() -> Any:
    """Load the trusted setup of mainnet, which py-evm contains, once."""
    # Importing py-evm would take a second.
    package = find_spec("eth")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "_utils" / "kzg_trusted_setup.txt"
    return ckzg.load_trusted_setup(str(path), 0)


def _is_valid(verify: Any, *arguments: Any) -> bool:
    """Return the result of a function of c-kzg, False if an argument is malformed."""
    try:
        return bool(verify(*arguments, _trusted_setup()))
    except (RuntimeError, ValueError):
        return False


# Reasons


def _first(failures: Any) -> str:
    """Return the first text that is not None."""
    return next(filter(None, failures), _WRONG_PROOF)


def _failures(points: Sequence[bytes]) -> Iterator[str | None]:
    return map(_point_failure, points)


def _check_blob(blob: bytes) -> None:
    """Check that a blob consists of field elements. Raises: MalformedBlob."""
    failure = _blob_failure(blob)
    if failure is not None:
        raise MalformedBlob(failure)


def _blob_failure(blob: bytes) -> str | None:
    """Return geth's error text for bytes that are not a blob's field elements, or None."""
    starts = range(0, len(blob), _SCALAR_BYTES)
    scalars = (blob[start : start + _SCALAR_BYTES] for start in starts)
    return next(filter(None, map(_scalar_failure, scalars)), None)


def _scalar_failure(scalar: bytes) -> str | None:
    if int.from_bytes(scalar, "big") < SCALAR_FIELD:
        return None
    return "scalar is not canonical when interpreted as a big integer in big-endian"


def _point_failure(point: bytes) -> str | None:
    """Return geth's error text for 48 bytes that are not a compressed G1 point, or None."""
    flags, x = point[0] >> 5, int.from_bytes(point, "big") % 2**381
    if flags in (0b000, 0b010):  # Flags of an uncompressed point, which is longer.
        return "short buffer"
    if flags in (0b001, 0b011, 0b111):
        return "invalid point encoding"
    if flags == 0b110:
        return "invalid infinity point encoding" if x else None
    if x >= BASE_FIELD:
        return "invalid fp.Element encoding"
    if pow(x**3 + 4, (BASE_FIELD - 1) // 2, BASE_FIELD) == BASE_FIELD - 1:
        return "invalid compressed coordinate: square root doesn't exist"
    if not G1Point.from_compressed_bytes_unchecked(point).is_in_subgroup():
        return "invalid point: subgroup check failed"
    return None
