"""The KZG proofs of a submitted transaction's blobs, with geth's texts.

Source: go-ethereum v1.17.10, core/txpool/validation.go (validateCellsOsaka),
core/txpool/blobpool/blobpool.go (newBlobTxForPool), internal/ethapi/api.go
(SendRawTransaction). Proofs of whole blobs: v1.17.2, validateBlobSidecarLegacy
"""

from __future__ import annotations

from evm.kzg import (
    InvalidProof,
    MalformedBlob,
    verify_blob_proofs,
    verify_cell_proofs,
    verify_commitments,
)
from nodeapi.sending.decoding import Sidecar
from nodeapi.sending.rules import InvalidTransaction

_FAILED = "KZG verification error"


def verify_proofs(sidecar: Sidecar, *, has_cell_proofs: bool) -> None:
    """Verify the proofs of blobs.

    sidecar: follows the rules of `nodeapi.sending.rules`.
    has_cell_proofs: whether the head's fork has proofs of cells. If so, geth replaces the
        proofs of a sidecar of version 0 without looking at them, and only the commitments
        are verified.

    Raises: InvalidTransaction.
    """
    blobs, commitments, proofs = sidecar.blobs, sidecar.commitments, sidecar.proofs
    try:
        if sidecar.version:
            verify_cell_proofs(blobs, commitments, proofs)
        elif has_cell_proofs:
            _verify_convertible(sidecar)
        else:
            verify_blob_proofs(blobs, commitments, proofs)
    except InvalidProof as error:
        if sidecar.version and isinstance(error, MalformedBlob):
            raise InvalidTransaction(str(error)) from None
        is_of_blobs = not sidecar.version and not has_cell_proofs
        kind = "invalid blob proof: " if is_of_blobs else ""
        raise InvalidTransaction(f"{_FAILED}: {kind}{error}") from None


def _verify_convertible(sidecar: Sidecar) -> None:
    """Verify a sidecar of version 0 as geth does after it has replaced the proofs.

    Raises: InvalidTransaction; InvalidProof.
    """
    try:
        verify_commitments(sidecar.blobs, sidecar.commitments)
    except MalformedBlob as error:
        text = f"blob sidecar conversion failed: {error}"
        raise InvalidTransaction(text) from None
