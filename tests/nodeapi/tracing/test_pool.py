"""Results of a pool of trace workers, and its limits per owner."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from evm.tracers.struct_log import StructLogOptions
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.stream import Stream
from nodeapi.errors.execution import (
    TooManyConcurrent,
    TooMuchUnread,
    TraceFailed,
    TraceResultTooLarge,
)
from nodeapi.tracing.jobs import TraceJob
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.worker import NICENESS
from tests.nodeapi.tracing.pools import (
    BLOCKS,
    DEEP,
    GREETINGS,
    LIMITS,
    LOOP,
    WIDE,
    answer,
    children,
    job,
    run,
)
from tests.support.waiting import until


def test_a_job_survives_the_way_to_the_worker(network_id: int) -> None:
    one = job(network_id, LOOP, tracer=StructLogOptions(limit=3), first=1, last=2)
    assert TraceJob.decode(one.encode()) == one


def test_entries_stand_in_order_and_a_worker_is_used_again(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        assert children() == []  # there was no request yet
        hashes = ["0x" + t.hash.hex() for t in BLOCKS[3].transactions]
        found = await answer(pool, job(network_id, GREETINGS))
        assert [entry["txHash"] for entry in found] == hashes
        assert [entry["result"]["gas"] for entry in found] == [21_018] * 3
        assert found[0]["result"]["returnValue"] == "0x" + "00" * 31 + "2a"
        (pid,) = children()
        threads = os.listdir(f"/proc/{pid}/task")
        assert NICENESS in [os.getpriority(os.PRIO_PROCESS, int(t)) for t in threads]
        part = await answer(pool, job(network_id, GREETINGS, first=1, last=1))
        assert part == found[1:2]
        single = job(network_id, GREETINGS, first=2, is_single=True)
        assert await answer(pool, single) == found[2]["result"]
        assert children() == [pid]

    run(test, LIMITS)


def test_a_pool_that_was_started_has_a_worker_for_the_first_job(
    network_id: int,
) -> None:
    async def test(pool: TracePool) -> None:
        await pool.start()
        (pid,) = children()
        assert await answer(pool, job(network_id, GREETINGS))
        assert children() == [pid]

    run(test, LIMITS)


def test_what_can_not_be_traced_has_geths_error_text(network_id: int) -> None:
    async def told(pool: TracePool, **options: Any) -> str:
        with pytest.raises(TraceFailed) as caught:
            await pool.trace(job(network_id, **options), "key")
        return caught.value.message

    async def test(pool: TracePool) -> None:
        start = BLOCKS[0].header.parent_hash
        unknown = bytes(32)
        assert await told(pool, block_hash=start) == "genesis is not traceable"
        assert await told(pool, block_hash=unknown) == f"block 0x{'00' * 32} not found"
        beyond = {"first": 3, "is_single": True}
        assert await told(pool, block_hash=LOOP, **beyond) == "transaction not found"

    run(test, LIMITS)


def test_calls_are_traced_1024_deep(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        (entry,) = await answer(pool, job(network_id, DEEP))
        depths = [log["depth"] for log in entry["result"]["structLogs"]]
        assert max(depths) == 1025
        assert not entry["result"]["failed"]

    run(test, LIMITS)


def test_a_long_answer_needs_little_memory(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        wide = job(network_id, WIDE, tracer=StructLogOptions(enable_memory=True))
        stream = await pool.trace(wide, "key")
        assert stream.size > 100 * 2**20
        (pid,) = children()
        status = Path(f"/proc/{pid}/status").read_text()
        (peak,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        assert int(peak.split()[1]) < 160 * 1024
        size = sum([len(chunk) async for chunk in stream])
        assert size == stream.size

    run(test, LIMITS)


def test_an_answer_that_is_too_long_is_refused(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        with pytest.raises(TraceResultTooLarge, match="fromTx") as caught:
            await pool.trace(job(network_id, LOOP), "key")
        assert caught.value.details == {"limit": 10_000}

    run(test, replace(LIMITS, result_bytes=10_000))


def test_a_key_has_only_so_many_at_once(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        first = asyncio.create_task(answer(pool, job(network_id, GREETINGS), "one"))
        second = asyncio.create_task(answer(pool, job(network_id, DEEP), "one"))
        await asyncio.sleep(0)
        with pytest.raises(TooManyConcurrent) as caught:
            await pool.trace(job(network_id, GREETINGS), "one")
        assert caught.value.http_status == 429
        assert caught.value.reason == "too_many_concurrent"
        assert len(await answer(pool, job(network_id, GREETINGS), "other")) == 3
        await asyncio.gather(first, second)
        assert len(await answer(pool, job(network_id, GREETINGS), "one")) == 3

    run(test, LIMITS)


def test_too_many_that_wait_are_turned_away(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        tasks = [
            asyncio.create_task(answer(pool, job(network_id, GREETINGS, first=n), n))
            for n in range(2)
        ]
        await asyncio.sleep(0)
        with pytest.raises(ServiceUnavailable):
            await pool.trace(job(network_id, GREETINGS, first=2), "more")
        await asyncio.gather(*tasks)

    run(test, replace(LIMITS, waiting=1))


def test_answers_that_are_not_read_are_limited(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        stream = await pool.trace(job(network_id, GREETINGS), "key")
        with pytest.raises(ServiceUnavailable):
            await pool.trace(job(network_id, GREETINGS, first=1), "other")
        del stream
        await asyncio.sleep(0)  # the event loop still refers to the callback
        gc.collect()
        assert len(await answer(pool, job(network_id, GREETINGS, first=1))) == 2

    run(test, replace(LIMITS, spool_bytes=1000))


def test_unread_answers_of_all_keys_of_an_owner_have_a_share(network_id: int) -> None:
    one, two, three = (job(network_id, GREETINGS, first=n) for n in range(3))

    async def test(pool: TracePool) -> None:
        first = await pool.trace(one, "key", owner="ann")
        with pytest.raises(TooMuchUnread) as caught:
            await pool.trace(two, "another key", owner="ann")
        assert (caught.value.http_status, caught.value.code) == (429, -32005)
        assert caught.value.data is not None
        assert caught.value.data["reason"] == "too_much_unread"
        assert caught.value.data["limit"] == 1000
        others = await pool.trace(two, "third key", owner="bob")
        await first.read()
        assert len(json.loads(await others.read())) == 2
        assert len(await answer(pool, two, "another key", owner="ann")) == 2
        # Concurrent results check the limit again at their end.
        both = [pool.trace(each, each.first, owner="ann") for each in (two, three)]
        streams = await asyncio.gather(*both, return_exceptions=True)
        assert [type(found) for found in streams] == [Stream, TooMuchUnread]

    run(test, replace(LIMITS, spool_bytes=2**30, owner_bytes=1000))


def test_an_answer_that_owners_share_counts_for_each_of_them(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        same = job(network_id, GREETINGS)
        asking = [pool.trace(same, n, owner=n % 2) for n in range(3)]
        streams = await asyncio.gather(*asking)
        assert len({id(stream) for stream in streams}) == 3
        size = streams[0].size
        assert pool.spooled.bytes == size
        assert dict(pool.spooled.owners) == {0: size, 1: size}
        for stream in streams[:2]:
            await stream.read()
        assert dict(pool.spooled.owners) == {0: size}
        await streams[2].read()
        assert not pool.spooled.owners
        assert not pool.spooled.readers

    run(test, LIMITS)


def test_a_trace_counts_until_its_answer_has_been_read_or_dropped(
    network_id: int,
) -> None:
    async def test(pool: TracePool) -> None:
        one = job(network_id, GREETINGS)
        first, second = [await pool.trace(one, "key") for _ in range(2)]
        with pytest.raises(TooManyConcurrent):
            await pool.trace(one, "key")
        await first.read()
        third = await pool.trace(one, "key")
        with pytest.raises(TooManyConcurrent):
            await pool.trace(one, "key")
        await second.aclose()  # before the first read
        fourth = await pool.trace(one, "key")
        await third.begin()
        await third.aclose()  # in the middle
        assert len(await answer(pool, one, "key")) == 3
        # The calls of a request count as one.
        await asyncio.gather(
            *(pool.trace(one, "key", request="batch") for _ in range(5))
        )
        del fourth
        gc.collect()
        assert len(await answer(pool, one, "key")) == 3
        assert not pool.requests

    run(test, LIMITS)


def test_no_worker_is_lost_while_answers_can_not_be_put_anywhere(
    network_id: int, tmp_path: Path
) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()

    async def test(pool: TracePool) -> None:
        assert len(await answer(pool, job(network_id, GREETINGS))) == 3
        pids = children()
        folder.rmdir()
        for first in (1, 2):
            with pytest.raises(FileNotFoundError):
                await pool.trace(job(network_id, GREETINGS, first=first), "key")
        folder.mkdir()
        assert len(await answer(pool, job(network_id, GREETINGS, first=1))) == 2
        assert children() == pids

    run(test, replace(LIMITS, spool_folder=folder))


def test_equal_jobs_at_once_are_executed_once(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        same = [pool.trace(job(network_id, DEEP), n) for n in range(10)]
        streams = await asyncio.gather(*same)
        assert len(children()) == 1  # of up to four
        answers = [await stream.read() for stream in streams]
        assert len(set(answers)) == 1

    run(test, replace(LIMITS, workers=4))


async def first_child() -> int:
    (pid,) = await until(children)
    return pid


def test_request_that_is_cancelled_leaves_the_job_to_the_others(
    network_id: int,
) -> None:
    async def test(pool: TracePool) -> None:
        patient = asyncio.create_task(answer(pool, job(network_id, DEEP), 1))
        hasty = asyncio.create_task(pool.trace(job(network_id, DEEP), 2))
        await first_child()
        hasty.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hasty
        assert len(await patient) == 1

    run(test, LIMITS)


@pytest.mark.parametrize("delay", [0, 0.02, 0.3])
def test_a_job_without_a_waiting_request_gives_its_worker_back(
    network_id: int, delay: float
) -> None:
    async def test(pool: TracePool) -> None:
        for owner in range(2):
            task = asyncio.create_task(pool.trace(job(network_id, LOOP), owner))
            await asyncio.sleep(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        # Another customer has the only worker. A new job of the key is accepted again.
        for _ in range(2):
            assert len(await answer(pool, job(network_id, GREETINGS), 0)) == 3

    run(test, LIMITS)


def test_the_event_loop_goes_on(network_id: int) -> None:
    longest = executed = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begun = time.thread_time()  # processor time, not wall time
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - begun)

    async def test(pool: TracePool) -> None:
        nonlocal executed
        watching = asyncio.create_task(watch())
        stream = await pool.trace(job(network_id, DEEP), "key")
        async for _ in stream:
            await asyncio.sleep(0)
        watching.cancel()
        (pid,) = children()
        executed = psutil.Process(pid).cpu_times().user

    run(test, LIMITS)
    assert longest < executed / 4
