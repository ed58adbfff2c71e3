"""The proofs of blobs. The texts are those of a real `geth --dev`; see `cases`."""

from __future__ import annotations

import secrets

import pytest

from evm.kzg import (
    InvalidProof,
    cell_proofs,
    commitment_of,
    verify_cell_proofs,
    verify_commitments,
)
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.proofs import verify_proofs
from nodeapi.sending.rules import InvalidTransaction
from tests.nodeapi.sending.cases import (
    BLOB,
    COMMITMENT,
    GENERATOR,
    INVALID_BLOB_PROOFS,
    INVALID_CELL_PROOFS,
    ONES,
    VALID_PROOFS,
)


def verify(raw: bytes, *, has_cell_proofs: bool) -> None:
    sidecar = decode_submission(raw).sidecar
    assert sidecar is not None
    verify_proofs(sidecar, has_cell_proofs=has_cell_proofs)


@pytest.mark.parametrize("name", INVALID_CELL_PROOFS)
def test_invalid_proofs_of_cells_are_refused_with_geths_text(name):
    raw, text = INVALID_CELL_PROOFS[name]
    with pytest.raises(InvalidTransaction) as caught:
        verify(raw, has_cell_proofs=True)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", INVALID_BLOB_PROOFS)
def test_invalid_proofs_of_blobs_are_refused_with_geths_text(name):
    raw, text = INVALID_BLOB_PROOFS[name]
    with pytest.raises(InvalidTransaction) as caught:
        verify(raw, has_cell_proofs=False)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", VALID_PROOFS)
def test_valid_proofs_are_accepted(name):
    verify(VALID_PROOFS[name], has_cell_proofs=True)


def test_valid_proofs_of_blobs_are_accepted():
    verify(VALID_PROOFS["version 0"], has_cell_proofs=False)


def test_computed_proofs_of_a_random_blob_are_valid():
    """Both ways to verify a blob from Osaka on agree: by proofs and by commitment."""
    blob = b"".join(b"\0" + secrets.token_bytes(31) for _ in range(4096))
    commitment = commitment_of(blob)
    proofs = cell_proofs(blob)
    verify_cell_proofs(
        [ONES, blob], [GENERATOR, commitment], [COMMITMENT] * 128 + proofs
    )
    verify_commitments([ONES, blob], [GENERATOR, commitment])
    exchanged = [proofs[1], proofs[0], *proofs[2:]]
    with pytest.raises(InvalidProof, match="can't verify opening proof"):
        verify_cell_proofs([blob], [commitment], exchanged)
    with pytest.raises(InvalidProof, match="can't verify opening proof"):
        verify_commitments([BLOB], [commitment])
