"""Time limits of programs that the JavaScript engine does not interrupt, on a busy machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from nodeapi.errors.execution import ExecutionTimedOut
from nodeapi.tracing.jobs import JavaScriptProgram, TraceJob
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.process import GRACE_SECONDS, WorkerProcess
from tests.nodeapi.tracing.pools import GREETINGS, LIMITS, answer, children, job, run
from tests.support.waiting import in_time, loop_turns

REGEX = (
    "{ step: function() { /^(a+)+$/.test('a'.repeat(64) + 'b'); },"
    "  fault: function() {}, result: function() { return 1; } }"
)
"""Backtracks for years inside one native function."""

BUSY = "import time; end = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


@contextmanager
def busy_processors() -> Iterator[None]:
    """Keep every processor busy with two processes."""
    count = 2 * (os.cpu_count() or 1)
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def regex_job(network_id: int, **options: Any) -> TraceJob:
    program = JavaScriptProgram(REGEX)
    return job(network_id, GREETINGS, tracer=program, timeout=1.0, **options)


def test_a_regular_expression_ends_at_its_time_limit(
    network_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker starts beside busy processors, and its caller does not wait for its end.

    A worker has a low priority only during executions. Otherwise its start would take
    minutes here.
    """
    is_over = asyncio.Event()
    kill = WorkerProcess.kill

    async def late(worker: WorkerProcess) -> int | None:
        await is_over.wait()
        return await kill(worker)

    async def test(pool: TracePool) -> None:
        monkeypatch.setattr(WorkerProcess, "kill", late)
        try:
            # On an idle processor, the engine's own limit applies earlier.
            with busy_processors():
                began = time.monotonic()
                with pytest.raises(ExecutionTimedOut):
                    await in_time(pool.trace(regex_job(network_id), "key"))
                passed = time.monotonic() - began
            # Its place is in use until it has exited, because it still has memory.
            waiting = asyncio.create_task(answer(pool, job(network_id, GREETINGS)))
            await loop_turns()  # a free place would have started a worker
            assert not waiting.done()
            assert len(children()) == 1
        finally:
            is_over.set()
        assert len(await waiting) == 3
        # Reading the block may take as long as executing it.
        assert passed < 2 * (1.0 + GRACE_SECONDS) + 2

    run(test, LIMITS)
