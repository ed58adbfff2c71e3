"""The task that verifies the proofs of a submitted transaction's blobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.proofs import verify_proofs
from nodeapi.sending.rules import InvalidTransaction
from nodeapi.tracing.context import SERVER_ERROR, TaskFailed

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task, TaskContext


def verify_sidecar(context: TaskContext, arguments: dict[str, Any]) -> bytes:
    """Verify the proofs of a blob transaction that follows all other rules.

    arguments: `raw`, the transaction in its network form; `has_cell_proofs`, see
        `nodeapi.sending.proofs`.

    Raises: TaskFailed with geth's text.
    """
    submission = decode_submission(bytes.fromhex(arguments["raw"][2:]))
    assert submission.sidecar is not None
    try:
        verify_proofs(submission.sidecar, has_cell_proofs=arguments["has_cell_proofs"])
    except InvalidTransaction as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from None
    return b"null"


TASKS: dict[str, Task] = {"verify_sidecar": verify_sidecar}
