"""The sidecar of a blob transaction that is filled in, from its blobs.

Source: go-ethereum v1.17.10, internal/ethapi/transaction_args.go `setBlobTxSidecar`
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from eth_typing import Hash32

from evm import rlp
from evm.checks import BLOB_HASH_VERSION
from evm.kzg import (
    InvalidProof,
    MalformedBlob,
    blob_proof,
    cell_proofs,
    commitment_of,
    verify_blob_proofs,
    verify_cell_proofs,
)
from evm.simulation.arguments import CallArguments, InvalidCall
from evm.transactions import CELLS_PER_BLOB
from nodeapi.sending.decoding import Sidecar

MAX_BLOBS = 6
"""Of a transaction, by geth's `BlobTxMaxBlobs`."""

Given = dict[str, list[bytes]]
"""What a caller gives of `blobs`, `commitments` and `proofs`, by these names."""


def fill_sidecar(asked: CallArguments, given: Given, *, has_cells: bool) -> Sidecar:
    """Return the sidecar of given blobs, and set the hashes of a call.

    Commitments and proofs are computed, or verified if both are given. Proofs of the other
    version are computed again.

    has_cells: whether the sidecar has version 1, with the proofs of cells (EIP-7594).

    Raises: InvalidCall with geth's text.
    """
    blobs, hashes = given["blobs"], asked.blob_versioned_hashes
    commitments, proofs = given.get("commitments"), given.get("proofs")
    if commitments is None and proofs is not None:
        raise InvalidCall("blob proofs provided while commitments were not")
    if commitments is not None and proofs is None:
        raise InvalidCall("blob commitments provided while proofs were not")
    count, due = len(blobs), len(blobs) * (CELLS_PER_BLOB if has_cells else 1)
    for name, found in (("hashes", hashes), ("commitments", commitments)):
        if found is not None and len(found) != count:
            raise InvalidCall(_numbers(name, len(found), count))
    if proofs is not None and len(proofs) != due:
        if len(proofs) != count:
            raise InvalidCall(_numbers("proofs", len(proofs), due))
        commitments = proofs = None
    check_count(count)  # geth checks it after it has computed all proofs
    if commitments is None or proofs is None:
        commitments, proofs = _computed(blobs, has_cells=has_cells)
    else:
        verify = verify_cell_proofs if has_cells else verify_blob_proofs
        try:
            verify(blobs, commitments, proofs)
        except InvalidProof as error:
            raise InvalidCall(f"failed to verify blob proof: {error}") from None
    computed = tuple(map(_hash_of, commitments))
    for have, want in zip(hashes or computed, computed, strict=True):
        if have != want:
            raise InvalidCall(
                f"blob hash verification failed (have=0x{have.hex()}, "
                f"want=0x{want.hex()})"
            )
    asked.blob_versioned_hashes = computed
    return Sidecar(int(has_cells), blobs, commitments, proofs)


def check_count(blobs: int) -> None:
    """Check the number of a transaction's blobs. Raises: InvalidCall."""
    if not blobs:
        raise InvalidCall("need at least 1 blob for a blob transaction")
    if blobs > MAX_BLOBS:
        raise InvalidCall(
            f"too many blobs in transaction (have={blobs}, max={MAX_BLOBS})"
        )


def network_form(raw: bytes, sidecar: Sidecar) -> bytes:
    """Return a blob transaction's encoding with its sidecar."""
    parts: list[rlp.Item] = [sidecar.blobs, sidecar.commitments, sidecar.proofs]
    if sidecar.version:
        parts.insert(0, rlp.encode_int(sidecar.version))
    return raw[:1] + rlp.wrap_list(raw[1:] + b"".join(map(rlp.encode, parts)))


def _computed(
    blobs: Sequence[bytes], *, has_cells: bool
) -> tuple[list[bytes], list[bytes]]:
    """Return the commitments and the proofs of blobs. Raises: InvalidCall."""
    commitments: list[bytes] = []
    proofs: list[bytes] = []
    for index, blob in enumerate(blobs):
        try:
            commitments.append(commitment_of(blob))
        except MalformedBlob as error:
            text = f"blobs[{index}]: error computing commitment: {error}"
            raise InvalidCall(text) from None
        if has_cells:
            proofs += cell_proofs(blob)
        else:
            proofs.append(blob_proof(blob, commitments[-1]))
    return commitments, proofs


def _numbers(name: str, have: int, want: int) -> str:
    return f"number of blobs and {name} mismatch (have={have}, want={want})"


def _hash_of(commitment: bytes) -> Hash32:
    return Hash32(bytes((BLOB_HASH_VERSION,)) + sha256(commitment).digest()[1:])
