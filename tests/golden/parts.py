"""The parts of the recorded requests. Each one has a file for each chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.golden import (
    calls,
    execution_calls,
    logs_calls,
    proof_calls,
    simulation_calls,
    state_calls,
)
from tests.golden.chains import Chain
from tests.golden.recording import Call

PARTS: dict[str, Callable[[Chain], Iterator[Call]]] = {
    "blocks": calls.calls_to,
    "logs": logs_calls.calls_to,
    "state": state_calls.calls_to,
    "executions": execution_calls.calls_to,
    "proofs": proof_calls.calls_to,
    "simulations": simulation_calls.calls_to,
}

GROUPS = (
    *(*calls.GROUPS, *logs_calls.GROUPS, *state_calls.GROUPS),
    *(*execution_calls.GROUPS, *proof_calls.GROUPS, *simulation_calls.GROUPS),
)
"""The groups that responses are compared in."""

SOME_PARTS = ("blocks", "executions")
"""Those of a chain that is not general."""
SOME_GROUPS = tuple(
    group
    for group in (*calls.GROUPS, *execution_calls.GROUPS)
    if group not in ("by tag", "malformed")
)


def parts_of(chain: str) -> tuple[str, ...]:
    """Return the parts that are recorded of a chain."""
    return SOME_PARTS if chain == "amsterdam" else tuple(PARTS)


def groups_of(chain: str) -> tuple[str, ...]:
    """Return the groups that are recorded of a chain."""
    return SOME_GROUPS if chain == "amsterdam" else GROUPS
