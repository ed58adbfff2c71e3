"""Worker processes that hang, exceed their memory, are killed, or are unavailable."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from jsonrpc.errors import InternalError, ServiceUnavailable
from nodeapi.chain.database import importer_connection
from nodeapi.errors.execution import (
    ExecutionTimedOut,
)
from nodeapi.node import database_conninfo
from nodeapi.tracing import process
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.process import WorkerProcess
from nodeapi.tracing.wire import LENGTH, MARKER_BYTES, WorkerSettings
from tests.nodeapi.tracing.pools import (
    DEEP,
    GREETINGS,
    LIMITS,
    LOOP,
    answer,
    children,
    job,
    opened,
    run,
    wait_until_executing,
)
from tests.support.waiting import PATIENCE_SECONDS, until, wait_until


def test_a_transaction_that_takes_too_long_is_given_up(
    network_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", PATIENCE_SECONDS)

    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        (pid,) = children()
        for _ in range(2):
            with pytest.raises(ExecutionTimedOut, match=r"^execution timeout$"):
                await pool.trace(job(network_id, LOOP, timeout=0.2), "key")
            assert children() == [pid]  # the worker has noticed this by itself
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3

    run(test, LIMITS)


def test_an_idle_worker_loads_the_setup_for_proofs_of_blobs(
    network_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = WorkerProcess.prepare
    prepared = []

    async def noted(worker: WorkerProcess) -> None:
        await prepare(worker)
        prepared.append(worker.pid)

    monkeypatch.setattr(WorkerProcess, "prepare", noted)

    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        await until(lambda: prepared)
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        assert children() == prepared

    run(test, LIMITS)


@pytest.mark.parametrize("timeout", [0.0, -5.0])
def test_no_time_at_all_costs_no_worker(network_id: int, timeout: float) -> None:
    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        (pid,) = children()
        with pytest.raises(ExecutionTimedOut):
            await pool.trace(job(network_id, LOOP, timeout=timeout), "key")
        assert children() == [pid]

    run(test, LIMITS)


def test_a_worker_that_hangs_is_replaced(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        (hanging,) = children()
        os.kill(hanging, signal.SIGSTOP)
        with pytest.raises(ExecutionTimedOut):
            await pool.trace(job(network_id, LOOP, timeout=0.2), "key")
        await until(lambda: not children())
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        assert children() != [hanging]

    run(test, LIMITS)


def test_a_worker_that_was_killed_is_an_internal_error_and_replaced(
    network_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        running = asyncio.create_task(pool.trace(job(network_id, LOOP), "key"))
        (pid,) = children()
        await asyncio.to_thread(wait_until_executing, pid)
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        other = asyncio.create_task(answer(pool, job(network_id, GREETINGS), "other"))
        with pytest.raises(InternalError):
            await running
        assert time.monotonic() - killed < 3.0, "docs/architecture.md"
        assert pool.workers.lost == 1
        assert f"trace worker {pid} died (status -9)" in caplog.text
        assert len(await other) == 3
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        (idle,) = children()
        os.kill(idle, signal.SIGKILL)
        await until(lambda: not pool.workers.idle[0].is_alive)
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3

    run(test, LIMITS)


def test_the_whole_of_a_job_is_limited_as_well(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        with pytest.raises(ExecutionTimedOut):
            await pool.trace(job(network_id, LOOP, timeout=50), "key")
        await until(lambda: not children())

    run(test, replace(LIMITS, seconds=1.2))


def test_a_worker_that_eats_memory_is_replaced(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        (pid,) = children()
        with pytest.raises(ExecutionTimedOut):
            await pool.trace(job(network_id, DEEP), "key")
        assert pool.workers.lost == 0
        await until(lambda: not children())
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        assert children() != [pid]

    run(test, replace(LIMITS, memory_bytes=2**20))


def test_a_database_that_does_not_answer_is_no_fault_of_the_trace(
    network_id: int,
) -> None:
    async def main() -> None:
        nowhere = database_conninfo() + " port=1"
        async with opened(LIMITS, nowhere) as pool:
            with pytest.raises(ServiceUnavailable):
                await pool.trace(job(network_id, GREETINGS), "key")

    asyncio.run(main())


def test_a_lost_connection_is_opened_again(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        (pid,) = children()
        with importer_connection() as connection:
            cut = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'cut me'"
            ).fetchall()
        assert len(cut) == 1
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        assert children() == [pid]

    async def main() -> None:
        conninfo = make_conninfo(database_conninfo(), application_name="cut me")
        async with opened(LIMITS, conninfo) as pool:
            await test(pool)

    asyncio.run(main())


def test_a_worker_goes_with_the_service(network_id: int) -> None:
    program = f"""if True:
        import asyncio
        from evm.tracers.struct_log import StructLogOptions
        from nodeapi.tracing.jobs import TraceJob
        from nodeapi.tracing.pool import TracePool
        from nodeapi.tracing.pool_limits import PoolLimits

        async def main():
            pool = TracePool({database_conninfo()!r}, PoolLimits(workers=1))
            job = TraceJob(network_id={network_id}, block_hash={LOOP!r},
                           tracer=StructLogOptions(), timeout=60)
            task = asyncio.create_task(pool.trace(job, 0))
            while not pool.workers.pids:
                await asyncio.sleep(0.01)
            print(*pool.workers.pids, flush=True)
            await task

        asyncio.run(main())
    """
    service = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    with service:
        assert service.stdout is not None
        worker = Path(f"/proc/{int(service.stdout.readline())}")
        wait_until(lambda: (worker / "comm").read_text() == "tracing.worker\n")
        wait_until_executing(int(worker.name))
        service.kill()
    wait_until(lambda: not worker.exists())


def test_a_worker_knows_no_django() -> None:
    code = "import sys, nodeapi.tracing.worker; print('django' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"


SERVE = """
import socket, sys
from nodeapi.tracing.worker import Worker
Worker(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])).serve()
"""


def test_a_worker_whose_service_has_gone_says_nothing() -> None:
    """The worker may just be about to send a message when the service ends."""
    settings = WorkerSettings("", memory_bytes=2**30, result_bytes=1).encode()
    service, worker = socket.socketpair()
    marker = os.memfd_create("marker")
    os.ftruncate(marker, MARKER_BYTES)
    with service, worker, os.fdopen(marker):
        service.sendall(LENGTH.pack(len(settings)) + settings)
        service.shutdown(socket.SHUT_RD)
        ended = subprocess.run(
            [sys.executable, "-c", SERVE, str(worker.fileno()), str(marker)],
            pass_fds=[worker.fileno(), marker],
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
    assert ended.stderr == b""
