"""Sidecars of transactions that are filled in, with the texts of a real geth 1.17.10."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from eth_typing import Hash32

from evm.kzg import verify_blob_proofs, verify_cell_proofs
from evm.simulation.arguments import CallArguments, InvalidCall
from nodeapi.sending.decoding import decode_submission
from nodeapi.tracing.tasks.sidecars import fill_sidecar, network_form
from tests.nodeapi.sending.cases import (
    BLOB,
    BLOB_TRANSACTION,
    COMMITMENT,
    GENERATOR,
    MALFORMED_BLOB,
    ONES,
    signed,
)

HASH = Hash32(b"\x01" + sha256(GENERATOR).digest()[1:])
OTHER_HASH = Hash32(b"\x01" + b"\x22" * 31)
SCALAR = "scalar is not canonical when interpreted as a big integer in big-endian"


@pytest.mark.parametrize("has_cells", [False, True])
def test_commitments_proofs_and_hashes_are_computed(has_cells: bool) -> None:
    asked = CallArguments()
    made = fill_sidecar(asked, {"blobs": [ONES]}, has_cells=has_cells)
    assert asked.blob_versioned_hashes == (HASH,)
    assert (made.version, made.commitments) == (int(has_cells), [GENERATOR])
    verify = verify_cell_proofs if has_cells else verify_blob_proofs
    verify(made.blobs, made.commitments, made.proofs)
    raw = network_form(signed(BLOB_TRANSACTION), made)
    assert decode_submission(raw).sidecar == made


@pytest.mark.parametrize(("has_cells", "proofs"), [(True, 128), (True, 1), (False, 1)])
def test_given_proofs_are_verified_or_replaced(has_cells: bool, proofs: int) -> None:
    given = {"blobs": [ONES], "commitments": [GENERATOR]}
    asked = CallArguments(blob_versioned_hashes=(HASH,))
    made = fill_sidecar(
        asked, {**given, "proofs": [COMMITMENT] * proofs}, has_cells=has_cells
    )
    assert len(made.proofs) == (128 if has_cells else 1)


@pytest.mark.parametrize(
    ("given", "hashes", "text"),
    [
        (
            {"proofs": [COMMITMENT]},
            None,
            "blob proofs provided while commitments were not",
        ),
        (
            {"commitments": [GENERATOR]},
            None,
            "blob commitments provided while proofs were not",
        ),
        (
            {"commitments": [GENERATOR] * 2, "proofs": [COMMITMENT]},
            None,
            "number of blobs and commitments mismatch (have=2, want=1)",
        ),
        (
            {"commitments": [GENERATOR], "proofs": [COMMITMENT] * 5},
            None,
            "number of blobs and proofs mismatch (have=5, want=1)",
        ),
        (
            {"commitments": [COMMITMENT], "proofs": [COMMITMENT]},
            None,
            "failed to verify blob proof: can't verify opening proof",
        ),
        ({}, (HASH,) * 2, "number of blobs and hashes mismatch (have=2, want=1)"),
        (
            {},
            (OTHER_HASH,),
            f"blob hash verification failed (have=0x{OTHER_HASH.hex()}, "
            f"want=0x{HASH.hex()})",
        ),
        (
            {"blobs": [ONES, MALFORMED_BLOB]},
            None,
            f"blobs[1]: error computing commitment: {SCALAR}",
        ),
        ({"blobs": []}, None, "need at least 1 blob for a blob transaction"),
        (
            {"blobs": [BLOB] * 7},
            None,
            "too many blobs in transaction (have=7, max=6)",
        ),
    ],
)
def test_what_is_given_wrongly_is_an_error_with_geths_text(
    given: dict[str, Any], hashes: tuple[Hash32, ...] | None, text: str
) -> None:
    asked = CallArguments(blob_versioned_hashes=hashes)
    with pytest.raises(InvalidCall) as caught:
        fill_sidecar(asked, {"blobs": [ONES], **given}, has_cells=False)
    assert str(caught.value) == text
