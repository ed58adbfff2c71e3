"""Turns of customers, and their shares of common resources."""

from __future__ import annotations

import asyncio

import pytest

from jsonrpc.turns import (
    RECENT_SECONDS,
    SLOW_SECONDS,
    FairQueue,
    LoopTurns,
    Shares,
    Turns,
)

LONG = SLOW_SECONDS + 0.1


def test_customers_take_turns() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(3):
        queue.push("a", f"a{number}")
    queue.push("b", "b0")
    assert queue.pop() == ("a", "a0")
    queue.push("c", "c0")
    queue.push_first("a", "again")
    order = [queue.pop()[1] for _ in range(len(queue))]
    assert order == ["b0", "again", "c0", "a1", "a2"]
    with pytest.raises(IndexError):
        queue.pop()


def test_a_customer_who_may_not_start_keeps_the_turn() -> None:
    queue: FairQueue[str] = FairQueue()
    for item in ("a0", "b0", "b1"):
        queue.push(item[0], item)
    assert queue.pop(lambda customer: customer != "a") == ("b", "b0")
    assert [*queue.of("b")] == ["b1"]
    assert queue.pop_of("b") == "b1"
    assert queue.pop() == ("a", "a0")
    assert not len(queue)


def test_the_last_place_is_not_for_a_customer_who_holds_one() -> None:
    shares = Shares(3)
    use = shares.begin("a", now=100.0)
    shares.begin("a", now=100.0)
    assert shares.may_begin("a", 1, now=100.0), "nobody else needs a place"
    shares.ask("b", now=100.0)
    assert not shares.may_begin("a", 1, now=100.0)
    assert shares.may_begin("a", 2, now=100.0)
    assert shares.may_begin("b", 1, now=100.0)
    assert shares.may_begin("a", 1, now=100.0 + RECENT_SECONDS)
    shares.end(use, now=100.1)
    assert not shares.may_begin("a", 1, now=100.1), "it holds another one"


def test_short_uses_do_not_hide_a_long_one() -> None:
    shares = Shares(2)
    shares.ask("quick", now=100.0)
    long = shares.begin("a", now=100.0)
    shares.end(long, now=100.0 + LONG)
    for second in range(101, 111):
        shares.end(shares.begin("a", now=second), now=second + 0.001)
    other = shares.begin("b", now=110.0)
    assert not shares.may_begin("a", 1, now=110.0 + LONG), "b is slow by now"
    assert shares.may_begin("quick", 1, now=110.0 + LONG)
    shares.end(other, now=111.0)
    shares.ask("quick", now=100.0 + LONG + RECENT_SECONDS)
    shares.begin("b", now=100.0 + LONG + RECENT_SECONDS)
    assert shares.may_begin("a", 1, now=100.0 + LONG + RECENT_SECONDS)


def test_slow_customers_wait_for_each_other_and_not_for_quick_ones() -> None:
    shares = Shares(2)
    for customer in ("a", "b"):
        shares.end(shares.begin(customer, now=100.0), now=100.0 + LONG)
    assert shares.may_begin("a", 1, now=101.0), "all recent customers are slow"
    quick = shares.begin("quick", now=101.0)
    assert shares.may_begin("a", 1, now=101.0), "a place is held for a short time only"
    shares.end(quick, now=101.1)
    shares.begin("a", now=101.1)
    assert not shares.may_begin("b", 1, now=101.1)
    assert shares.may_begin("new", 1, now=101.1)


def test_a_single_place_is_for_everybody() -> None:
    shares = Shares(1)
    shares.ask("quick", now=100.0)
    shares.end(shares.begin("a", now=100.0), now=100.0 + LONG)
    assert shares.may_begin("a", 1, now=101.0)


def test_places_are_given_in_turn_and_returned() -> None:
    async def scenario() -> list[str]:
        turns = Turns(2)
        order: list[str] = []
        held = asyncio.Event()

        async def operation(name: str) -> None:
            async with turns.place(name[0]):
                order.append(name)
                await held.wait()

        async with turns.place("b"):
            pass
        names = ["a0", "a1", "a2", "c0", "d0"]
        tasks = [asyncio.create_task(operation(name)) for name in names]
        while len(order) < 2:
            await asyncio.sleep(0)
        tasks[1].cancel()
        held.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with turns.place("a"):
            return order

    assert asyncio.run(scenario()) == ["a0", "c0", "d0", "a2"]


def test_one_turn_of_the_loop_is_given_in_each_iteration() -> None:
    async def scenario() -> list[str]:
        turns = LoopTurns()
        iterations: list[list[str]] = []

        async def operation(customer: str) -> None:
            for _ in range(2):
                await turns.wait(customer)
                iterations[-1].append(customer)

        async def count() -> None:
            while True:
                iterations.append([])
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        waiting = asyncio.create_task(turns.wait("a"))
        work = [asyncio.create_task(operation(customer)) for customer in "aab"]
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(*work)
        counting.cancel()
        assert max(map(len, iterations)) == 1
        return [customer for iteration in iterations for customer in iteration]

    assert asyncio.run(scenario()) == ["b", "a", "b", "a", "a", "a"]
