"""The accounts that take part in a transaction's call frames, with their roles.

Frames count if flatCallTracer shows them: calls of precompiled contracts by CALL and
STATICCALL do not.
"""

from __future__ import annotations

from collections.abc import Collection

from evm.tracers.frames import CREATIONS, CallFrame

CALLER = 0b001
"""Role of an account that made a call, created a contract or executed SELFDESTRUCT. An
account's roles are combined with `|`."""
CALLEE = 0b010
"""Role of an account that was called or created, or got the balance of a SELFDESTRUCT."""
CREATED = 0b100
"""Role of an account that was created, if neither that frame nor one above it failed."""


def parties(top: CallFrame, precompiles: Collection[bytes]) -> dict[bytes, int]:
    """Return the combined roles of each account in a call tree, by address.

    precompiles: addresses of the fork's precompiled contracts.
    """
    found: dict[bytes, int] = {}
    waiting = [(top, False)]
    while waiting:
        frame, is_void = waiting.pop()
        is_void = is_void or frame.error is not None
        found[frame.sender] = found.get(frame.sender, 0) | CALLER
        to = callee(frame)
        if to is not None:
            is_created = frame.type in CREATIONS and not is_void
            roles = CALLEE | CREATED if is_created else CALLEE
            found[to] = found.get(to, 0) | roles
        if frame.calls:
            shown = visible_calls(frame, precompiles)
            waiting += [(call, is_void) for call in shown]
    return found


def callee(frame: CallFrame) -> bytes | None:
    """Return the account that a frame calls, creates or pays.

    None if the frame is a creation that failed.
    """
    if frame.error is not None and frame.type in CREATIONS:
        return None
    return frame.to


def visible_calls(frame: CallFrame, precompiles: Collection[bytes]) -> list[CallFrame]:
    """Return the calls that a frame made, without those of precompiled contracts."""
    return [
        call
        for call in frame.calls
        if call.type not in ("CALL", "STATICCALL") or call.to not in precompiles
    ]
