from __future__ import annotations

import asyncio
from collections.abc import Callable

from jsonrpc.reservations import Reservation, Reservations


def in_a_loop(scenario: Callable[[], None]) -> None:
    async def run() -> None:
        scenario()

    asyncio.run(run())


def is_admitted(reservation: Reservation) -> bool:
    return reservation.admitted is None or reservation.admitted.done()


def test_owners_take_turns():
    def scenario() -> None:
        reservations = Reservations(10, 10)
        first = reservations.reserve("a", 10)
        of_a = [reservations.reserve("a", 10) for _ in range(3)]
        of_b = reservations.reserve("b", 10)
        assert [is_admitted(each) for each in (first, *of_a, of_b)] == [True] + 4 * [
            False
        ]
        order = []
        waiting = {"a1": of_a[0], "a2": of_a[1], "a3": of_a[2], "b": of_b}
        done = first
        while waiting:
            reservations.release(done)
            name = next(name for name, each in waiting.items() if is_admitted(each))
            order.append(name)
            done = waiting.pop(name)
        reservations.release(done)
        assert order == ["a1", "b", "a2", "a3"]
        assert reservations.size == 0

    in_a_loop(scenario)


def test_owner_above_its_limit_does_not_delay_other_owners():
    def scenario() -> None:
        reservations = Reservations(10, 5)
        assert is_admitted(reservations.reserve("a", 5))
        assert not is_admitted(reservations.reserve("a", 1))
        assert is_admitted(reservations.reserve("b", 4))
        assert reservations.size == 9

    in_a_loop(scenario)


def test_large_reservation_is_not_overtaken_for_ever():
    def scenario() -> None:
        reservations = Reservations(10, 10)
        small = reservations.reserve("a", 2)
        large = reservations.reserve("b", 10)
        assert not is_admitted(reservations.reserve("c", 1))
        reservations.release(small)
        assert is_admitted(large)

    in_a_loop(scenario)


def test_one_that_gives_up_lets_those_behind_it_pass():
    def scenario() -> None:
        reservations = Reservations(10, 10)
        first = reservations.reserve("a", 5)
        given_up = reservations.reserve("b", 10)
        behind = reservations.reserve("c", 5)
        assert not is_admitted(behind)
        reservations.release(given_up)
        assert is_admitted(behind)
        for each in first, behind:
            reservations.release(each)
        assert reservations.size == 0

    in_a_loop(scenario)


def test_reservation_beyond_the_limit_counts_as_much_as_an_owner_may_have():
    def scenario() -> None:
        reservations = Reservations(10, 5)
        whole = reservations.reserve("a", 1000)
        assert is_admitted(whole)
        assert reservations.size == 5
        reservations.release(whole)
        assert reservations.size == 0

    in_a_loop(scenario)
