"""Tasks of worker processes, by name. One module for each family.

A task takes a `TaskContext` and the job's arguments, and returns JSON or a `TaskResult`. It
raises TaskFailed for an error of the caller.
"""

from __future__ import annotations

from nodeapi.tracing.context import Task
from nodeapi.tracing.tasks import (
    access_lists,
    block_lists,
    block_traces,
    building,
    call_traces,
    calls,
    filling,
    fork_comparison,
    proofs,
    state_ranges,
)

TASKS: dict[str, Task] = {
    **access_lists.TASKS,
    **block_lists.TASKS,
    **block_traces.TASKS,
    **building.TASKS,
    **call_traces.TASKS,
    **calls.TASKS,
    **filling.TASKS,
    **fork_comparison.TASKS,
    **proofs.TASKS,
    **state_ranges.TASKS,
}
"""Name of a job's `task` → function."""

REPEATABLE = calls.REPEATABLE
"""Tasks that are begun again when rows are missing.

The rows of several such tasks are read together. The tasks must not write a result in
pieces, and should be short.
"""
