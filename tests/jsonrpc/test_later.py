from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from jsonrpc.later import DONE, Later, all_of, if_found, when_all_done
from tests.support.coroutines import scenario


class Failure(Exception):
    """An error of an operation."""


def pending() -> tuple[asyncio.Future[Any], Later[Any]]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    return future, Later.from_future(future)


async def turn() -> None:
    """Let the callbacks of futures run."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_complete_operation_has_its_value():
    later = Later(5)
    assert later.is_done
    assert later.error is None
    assert later.result() == 5


def test_failed_operation_raises_its_error():
    error = Failure()
    later: Later[int] = Later.failed(error)
    assert later.is_done
    assert later.error is error
    with pytest.raises(Failure):
        later.result()


def test_step_is_called_at_once_with_an_available_value():
    assert Later(5).then(lambda value: value + 1).result() == 6


@scenario
async def test_step_may_return_another_operation():
    future, inner = pending()
    later = Later(5).then(lambda value: inner.then(lambda more: value + more))
    assert not later.is_done
    future.set_result(2)
    assert await later == 7
    assert await inner.then(lambda more: Later(more + 1)) == 3


def test_error_skips_steps():
    called: list[object] = []
    error = Failure()
    later: Later[int] = Later.failed(error)
    assert later.then(called.append).error is error
    assert called == []


def test_error_of_a_step_is_an_error_of_the_result():
    def fail(_: object) -> int:
        raise Failure

    assert isinstance(Later(5).then(fail).error, Failure)
    assert isinstance(Later(5).handle(fail).error, Failure)


@scenario
async def test_step_that_finds_a_cancelled_operation_does_not_leave_its_own_pending():
    _, other = pending()
    other.cancel()
    future, later = pending()
    following = later.then(lambda _: other.result())
    future.set_result(None)
    await turn()
    assert isinstance(following.error, asyncio.CancelledError)


def test_none_skips_the_step_of_a_look_up():
    found: Later[int | None] = Later(5)
    missing: Later[int | None] = DONE
    assert if_found(found, lambda value: Later(value + 1)).result() == 6
    assert if_found(missing, lambda value: Later(value + 1)).result() is None


def test_handler_takes_values_and_errors():
    failed: Later[int] = Later.failed(Failure())
    assert Later(5).handle(lambda done: done.result() + 1).result() == 6
    assert failed.handle(lambda done: type(done.error)).result() is Failure


@pytest.mark.parametrize("outcome", [5, Failure()])
@scenario
async def test_pending_steps_run_in_one_callback_of_the_future(outcome: int | Failure):
    future, later = pending()
    results: list[str] = []
    doubled = later.then(lambda value: Later(value * 2)).then(lambda value: value)
    handled = doubled.handle(lambda done: repr(done.error or done.result()))
    handled.when_done(lambda done: results.append(done.result()))
    if isinstance(outcome, Failure):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
    asyncio.get_running_loop().call_soon(results.append, "next callback")
    await turn()
    first = "Failure()" if isinstance(outcome, Failure) else "10"
    assert results == [first, "next callback"]


@scenario
async def test_callbacks_are_called_in_order_and_at_once_after_completion():
    future, later = pending()
    called: list[str] = []
    later.when_done(lambda _: called.append("a"))
    later.when_done(lambda _: called.append("b"))
    future.set_result(1)
    await turn()
    later.when_done(lambda _: called.append("c"))
    assert called == ["a", "b", "c"]


@scenario
async def test_finished_future_is_complete_at_once():
    future, _ = pending()
    future.set_result(5)
    assert Later.from_future(future).result() == 5
    failed, _ = pending()
    failed.set_exception(Failure())
    assert isinstance(Later.from_future(failed).error, Failure)
    cancelled, _ = pending()
    cancelled.cancel()
    error = Later.from_future(cancelled).error
    assert isinstance(error, asyncio.CancelledError)


@scenario
async def test_coroutine_is_run_in_a_task():

    async def work(outcome: object) -> object:
        await asyncio.sleep(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert await Later.from_coroutine(work(5)) == 5
    with pytest.raises(Failure):
        await Later.from_coroutine(work(Failure()))


@scenario
async def test_complete_operation_is_awaited_without_a_turn_of_the_loop():
    turns: list[int] = []
    asyncio.get_running_loop().call_soon(turns.append, 1)
    assert await Later(5) == 5
    with pytest.raises(Failure):
        await Later.failed(Failure())
    assert turns == []


@scenario
async def test_several_tasks_may_await_the_same_operation():
    future, later = pending()
    waiting = asyncio.gather(later, later.then(str), later)
    await turn()
    future.set_result(5)
    assert await waiting == [5, "5", 5]


@scenario
async def test_cancelling_completes_at_once_and_reaches_the_future():
    future, later = pending()
    called: list[object] = []
    second = later.then(called.append)
    second.when_done(lambda done: called.append(type(done.error)))
    second.cancel()
    assert isinstance(second.error, asyncio.CancelledError)
    assert future.cancelled()
    await turn()
    assert called == [asyncio.CancelledError]


@scenario
async def test_cancelling_reaches_the_operation_that_a_step_returned():
    ended: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    future, first = pending()
    later = first.then(lambda _: Later.from_coroutine(work()))
    future.set_result(None)
    await turn()
    later.cancel()
    await turn()
    assert ended == [True]


@scenario
async def test_cancelled_task_cancels_what_it_awaits():
    future, later = pending()

    async def wait() -> object:
        return await later

    task = asyncio.ensure_future(wait())
    await turn()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert future.cancelled()
    assert isinstance(later.error, asyncio.CancelledError)


@scenario
async def test_aborted_operation_keeps_its_error_whatever_its_source_does():
    future, later = pending()
    called: list[object] = []
    second = later.handle(called.append)
    second.abort(Failure())
    later.abort(ValueError())
    second.abort(ValueError())
    await turn()
    assert isinstance(second.error, Failure)
    assert isinstance(later.error, asyncio.CancelledError)
    assert future.cancelled()
    assert called == []


def test_complete_operation_is_not_cancelled():
    later = Later(5)
    later.cancel()
    later.abort(Failure())
    assert later.result() == 5


@scenario
async def test_values_of_several_operations_come_in_order():
    (first, one), (second, two) = pending(), pending()
    later = all_of([one, Later("b"), two])
    second.set_result("c")
    await turn()
    assert not later.is_done
    first.set_result("a")
    assert await later == ["a", "b", "c"]
    assert all_of([Later(1), Later(2)]).result() == [1, 2]
    assert all_of([]).result() == []
    assert when_all_done([]) is DONE


@scenario
async def test_first_error_of_several_operations_is_that_of_all():
    (first, one), (second, two) = pending(), pending()
    laters = [Later(1), one, two]
    later, done = all_of(laters), when_all_done(laters)
    second.set_exception(ValueError())
    await turn()
    assert not later.is_done
    first.set_exception(Failure())
    await turn()
    assert isinstance(later.error, Failure)
    assert done.error is None


@scenario
async def test_several_operations_are_cancelled_together():
    (first, one), (second, two) = pending(), pending()
    first.set_result(1)
    await turn()
    all_of([one, two]).cancel()
    assert one.result() == 1
    assert second.cancelled()
    assert isinstance(two.error, asyncio.CancelledError)


class Value:
    """An object that can be referred to weakly."""


async def _succeed(value: Value) -> None:
    future, later = pending()
    whole = all_of([later.then(lambda found: Later((found, value))), Later(1)])
    following = whole.handle(lambda done: done.result())
    future.set_result(value)
    await following


async def _fail(value: Value) -> None:
    async def work() -> Value:
        await asyncio.sleep(0)
        if value:
            raise Failure
        return value

    def fail(_: object) -> Value:
        raise Failure

    with pytest.raises(Failure):
        await Later.from_coroutine(work()).then(lambda _: value)
    with pytest.raises(Failure):
        await Later(value).then(fail)
    with pytest.raises(Failure):
        Later(value).then(fail).result()


async def _cancel(value: Value) -> None:
    _, later = pending()
    following = later.then(lambda _: value).handle(lambda _: value)
    following.cancel()
    _, later = pending()
    later.then(lambda _: value).abort(Failure())
    await turn()


@pytest.mark.parametrize("use", [_succeed, _fail, _cancel])
def test_completed_operations_are_freed_without_the_garbage_collector(
    use: Callable[[Value], Coroutine[Any, Any, None]],
):
    async def scenario() -> weakref.ref[Value]:
        value = Value()
        await use(value)
        return weakref.ref(value)

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(scenario())() is None
    finally:
        gc.enable()
