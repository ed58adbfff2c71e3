from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread

import pytest

from tests.support.waiting import PATIENCE_SECONDS, wait_until
from wallets.signing.turns import TooBusy, Turns


class Worker(Thread):
    """A thread that takes a turn and holds it until it is stopped."""

    def __init__(self, turns: Turns, owner: str) -> None:
        super().__init__()
        self.state = "waits"
        self._turns = turns
        self._owner = owner
        self._is_told = Event()

    def run(self) -> None:
        try:
            with self._turns.turn(self._owner, PATIENCE_SECONDS):
                self.state = "works"
                self._is_told.wait(PATIENCE_SECONDS)
            self.state = "ended"
        except TooBusy:
            self.state = "refused"

    def end(self) -> None:
        self._is_told.set()
        self.join()


class Crowd:
    """Workers that share two turns and a queue of three."""

    def __init__(self, max_of_one: int | None = None) -> None:
        self.turns = Turns(max_working=2, max_waiting=3, max_of_one=max_of_one)
        self.workers: list[Worker] = []

    def ask(self, owners: str) -> None:
        """Start workers of these owners, one after the other. Each letter is an owner."""
        for owner in owners:
            self.workers.append(Worker(self.turns, owner))
            self.workers[-1].start()
            wait_until(self._is_settled)

    def end(self, index: int) -> None:
        self.workers[index].end()
        wait_until(self._is_settled)

    def finish(self) -> None:
        while any(worker.is_alive() for worker in self.workers):
            for index in self.all_in("works"):
                self.workers[index].end()

    def all_in(self, state: str) -> list[int]:
        return [i for i, worker in enumerate(self.workers) if worker.state == state]

    def _is_settled(self) -> bool:
        """Return whether each worker has a result."""
        return len(self.all_in("waits")) == self.turns.waiting


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    crowd = Crowd()
    yield crowd
    crowd.finish()


def test_single_client_has_all_turns_and_all_places(crowd: Crowd) -> None:
    crowd.ask("aaaaaa")
    assert crowd.all_in("works") == [0, 1]
    assert crowd.all_in("waits") == [2, 3, 4]
    assert crowd.all_in("refused") == [5]
    crowd.end(1)
    assert crowd.all_in("works") == [0, 2]


def test_one_owner_leaves_turns_to_others() -> None:
    crowd = Crowd(max_of_one=1)
    try:
        crowd.ask("aab")
        assert crowd.all_in("works") == [0, 2]
        crowd.end(2)
        assert crowd.all_in("works") == [0]
        crowd.end(0)
        assert crowd.all_in("works") == [1]
    finally:
        crowd.finish()


def test_free_turn_goes_to_a_client_without_one(crowd: Crowd) -> None:
    crowd.ask("aaaab")
    crowd.end(0)
    assert crowd.all_in("works") == [1, 4]
    crowd.end(1)
    assert crowd.all_in("works") == [2, 4]


def test_new_client_takes_the_last_place_of_the_client_with_most(crowd: Crowd) -> None:
    crowd.ask("aaaaab")
    assert crowd.all_in("refused") == [4]
    crowd.ask("b")  # whose owner would then have as many
    assert crowd.all_in("refused") == [4, 6]
    crowd.ask("c")
    assert crowd.all_in("refused") == [3, 4, 6]
    crowd.ask("d")
    assert crowd.all_in("waits") == [2, 5, 7]
    assert crowd.all_in("refused") == [3, 4, 6, 8]


def test_no_user_waits_longer_than_the_timeout(crowd: Crowd) -> None:
    crowd.ask("ab")
    with pytest.raises(TooBusy), crowd.turns.turn("c", timeout_seconds=0.01):
        pass
    crowd.end(0)
    with crowd.turns.turn("c", timeout_seconds=0):
        pass
