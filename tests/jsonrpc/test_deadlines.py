from __future__ import annotations

import asyncio

import pytest

from jsonrpc.deadlines import Deadlines
from jsonrpc.errors import RequestTimedOut
from jsonrpc.later import Later
from tests.support.virtual_time import run


def test_work_in_time_is_left_alone():
    async def work():
        deadlines = Deadlines(0.05)
        with deadlines.deadline() as deadline:
            await asyncio.sleep(0.01)
        # Completed work has no deadline that could interrupt this.
        await asyncio.sleep(0.06)
        return deadline.expired

    assert run(work()) is False


def test_pending_operations_are_aborted_at_their_own_deadlines():
    async def work():
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(0.1)
        ended: list[tuple[float, type]] = []
        futures = [loop.create_future() for _ in range(3)]
        for future in futures:
            later = deadlines.limit(Later.from_future(future))
            later.when_done(lambda done: ended.append((loop.time(), type(done.error))))
            await asyncio.sleep(0.05)
        futures[2].set_result(5)
        await asyncio.sleep(0.2)
        assert [future.cancelled() for future in futures] == [True, True, False]
        assert later.result() == 5
        assert deadlines.limit(Later(1)).result() == 1
        return ended

    times, errors = zip(*run(work()), strict=True)
    assert times == pytest.approx((0.1, 0.15, 0.15))
    assert errors == (RequestTimedOut, RequestTimedOut, type(None))


def test_each_is_interrupted_when_its_own_time_is_up():
    async def work():
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(0.1)

        async def wait():
            started = loop.time()
            with pytest.raises(TimeoutError), deadlines.deadline():
                await asyncio.sleep(10)
            return loop.time() - started

        first = asyncio.create_task(wait())
        await asyncio.sleep(0.05)
        return await asyncio.gather(first, wait())

    assert run(work()) == [pytest.approx(0.1)] * 2


def test_cancellation_from_elsewhere_stays_one():
    async def work():
        deadlines = Deadlines(10)

        async def wait():
            with deadlines.deadline():
                await asyncio.sleep(10)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run(work())


def test_task_goes_on_after_its_deadline():
    async def work():
        deadlines = Deadlines(0.01)
        for _ in range(2):
            with pytest.raises(TimeoutError), deadlines.deadline():
                await asyncio.sleep(10)
        return asyncio.current_task().cancelling()

    assert run(work()) == 0
