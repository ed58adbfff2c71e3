"""Traces that are not about a stored block's transactions, executed in worker processes."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from nodeapi.errors.execution import ExecutionTimedOut, TaskTimeout
from nodeapi.methods.context import Context
from nodeapi.methods.execution import run_task
from nodeapi.methods.trace_options import JAVASCRIPT, TraceOptions
from nodeapi.results.answers import Answer

MAX_SECONDS = 3600.0
"""Longest timeout that is passed on; the pool's limit is far below."""

_GRACE_SECONDS = 1.0
"""Time after a trace's timeout in which the worker reports it."""


def trace_seconds(options: TraceOptions) -> float:
    """Return the timeout of a trace in seconds."""
    seconds = (
        settings.NODEAPI_TRACE_TIMEOUT if options.timeout is None else options.timeout
    )
    return min(max(seconds, 0.0), MAX_SECONDS)


async def run_trace(
    context: Context,
    task: str,
    block_hash: bytes,
    arguments: dict[str, Any],
    options: TraceOptions,
) -> Answer:
    """Return the result of a task that traces.

    Like other traces, the calls of a batch are executed one after the other. Programs may
    read the clock, so that their results are not cached.

    options: of the trace that takes longest. Fails as `run_task`.
    """
    async with context.turn:
        try:
            return await run_task(
                context,
                task,
                block_hash,
                arguments,
                is_cached=JAVASCRIPT not in options.names,
                timeout=trace_seconds(options) + _GRACE_SECONDS,
            )
        except TaskTimeout:
            raise ExecutionTimedOut from None
