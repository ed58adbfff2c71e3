"""Trace pools for tests, and checks for leftover processes and open files."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psutil

from evm.tracers.struct_log import StructLogOptions
from nodeapi.node import database_conninfo
from nodeapi.tracing.jobs import TraceJob
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.pool_limits import PoolLimits
from nodeapi.tracing.worker import NICENESS
from server import forking
from tests.nodeapi.tracing import chain
from tests.support import commands
from tests.support.waiting import wait_until

BLOCKS = chain.blocks()
LOOP, DEEP, WIDE, GREETINGS = (block.header.hash for block in BLOCKS)
LIMITS = PoolLimits(workers=1)


@asynccontextmanager
async def opened(limits: PoolLimits, conninfo: str | None = None) -> Any:
    pool = TracePool(conninfo or database_conninfo(), limits)
    try:
        yield pool
    finally:
        await pool.close()


def run(test: Callable[[TracePool], Awaitable[None]], limits: PoolLimits) -> None:
    """Run a coroutine with a pool, and check that it leaves no processes and files."""

    async def main() -> None:
        async with opened(limits) as pool:
            await test(pool)

    forking.shared.open()
    gc.collect()
    gc.freeze()  # the next collections only visit what is made from now on
    before = descriptors()
    asyncio.run(main())
    gc.collect()
    assert descriptors() == before
    assert children() == []


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> list[int]:
    """Return the trace workers of this process that are alive, or not reaped."""
    return sorted(commands.descendants("tracing.worker"))


def wait_until_executing(pid: int) -> None:
    """Wait until a trace worker uses the processor, which means that it executes a job."""
    process = psutil.Process(pid)
    wait_until(lambda: NICENESS in map(niceness, process.threads()))
    ready = process.cpu_times().user
    wait_until(lambda: process.cpu_times().user > ready + 0.1)


def niceness(thread: Any) -> int | None:
    """Return the niceness of a thread, None when it has ended."""
    try:
        return os.getpriority(os.PRIO_PROCESS, thread.id)
    except ProcessLookupError:
        return None


async def answer(
    pool: TracePool, job: TraceJob, key: object = "key", owner: object = None
) -> Any:
    stream = await pool.trace(job, key, owner=owner)
    data = await stream.read()
    assert len(data) == stream.size
    return json.loads(data)


def job(network_id: int, block_hash: bytes, **options: Any) -> TraceJob:
    values: dict[str, Any] = {"timeout": 60.0, "tracer": StructLogOptions()}
    return TraceJob(
        network_id=network_id, block_hash=block_hash, **{**values, **options}
    )
