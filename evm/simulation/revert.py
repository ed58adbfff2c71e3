"""The error of a call that was reverted.

Source: go-ethereum v1.17.10, internal/ethapi/errors.go `newRevertError`
"""

from __future__ import annotations

from evm.frame_errors import REVERTED
from evm.tracers.revert_reason import revert_reason

REVERT_CODE = 3
"""Code of the JSON-RPC error. Its `data` is the return data."""


def revert_message(output: bytes) -> str:
    """Return geth's message for a revert, with the reason if the return data has one."""
    reason = revert_reason(output)
    return REVERTED if reason is None else f"{REVERTED}: {reason}"
