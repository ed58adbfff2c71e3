from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from server.bounds import ConnectionLimit
from server.memory_bounds import Buffer, BufferedBytes, ByteLimits

MIB = 2**20
LIMITS = ByteLimits(process=256 * MIB, key=64 * MIB, address=128 * MIB)


@dataclass
class Process:
    """A `BufferedBytes` with a test clock, and the clients that it has disconnected."""

    now: float = 0.0
    gone: list[tuple[str, str]] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.buffered = BufferedBytes(LIMITS, clock=lambda: self.now)

    def client(self, name: str, size: int, key: object, address: object) -> Buffer:
        self.unread[name] = size
        buffer = Buffer(
            lambda scope: self.gone.append((name, scope)), lambda: self.unread[name]
        )
        self.buffered.assign(buffer, key, address)
        self.buffered.set(buffer, size)
        return buffer


def test_key_that_has_too_much_loses_the_client_that_waits_longest() -> None:
    process = Process()
    for name in ("a", "b"):
        process.client(name, 25 * MIB, 1, name)
        process.now += 1
    process.client("other", 60 * MIB, 2, "other")
    process.client("c", 25 * MIB, 1, "c")
    assert process.gone == [("a", "key")]
    assert process.buffered.size == 110 * MIB


def test_address_that_has_too_much_loses_clients_of_any_key() -> None:
    process = Process()
    for key in range(4):
        process.client(str(key), 40 * MIB, key, "here")
        process.now += 1
    assert process.gone == [("0", "address"), ("1", "address")]


def test_process_has_a_bound_for_all_together() -> None:
    process = Process()
    for number in range(20):
        process.client(str(number), 20 * MIB, number, number)
        process.now += 1
    assert process.buffered.size <= LIMITS.process
    assert process.gone == [
        (str(number), "process") for number in range(len(process.gone))
    ]
    assert 8 <= len(process.gone) <= 10


def test_client_that_makes_progress_stays() -> None:
    process = Process()
    reader = process.client("reader", 25 * MIB, 1, "reader")
    for second in range(1, 20):
        process.now = float(second)
        process.unread["reader"] -= 100_000
        process.buffered.progress(reader)
        process.client(f"idle {second}", 25 * MIB, 1, "idle")
    assert reader.size
    assert ("reader", "key") not in process.gone


def test_byte_now_and_then_is_no_progress() -> None:
    process = Process()
    trickle = process.client("trickle", 25 * MIB, 1, "trickle")
    for second in range(1, 20):
        process.now = float(second)
        process.unread["trickle"] -= 100
        process.buffered.progress(trickle)
    process.client("b", 25 * MIB, 1, "b")
    process.client("c", 25 * MIB, 1, "c")
    assert process.gone == [("trickle", "key")]


def test_progress_of_long_ago_does_not_count() -> None:
    process = Process()
    was_quick = process.client("was quick", 25 * MIB, 1, "a")
    for now in (1.0, 2.0):
        process.now = now
        process.unread["was quick"] -= MIB
        process.buffered.progress(was_quick)
    process.now = 20.0
    process.client("b", 25 * MIB, 1, "b")
    process.now = 21.0
    process.client("c", 25 * MIB, 1, "c")
    assert process.gone == [("was quick", "key")]


def test_one_client_alone_may_have_any_size() -> None:
    process = Process()
    process.client("a", 300 * MIB, 1, "a")
    assert process.gone == []


def test_bytes_that_are_read_are_forgotten() -> None:
    process = Process()
    buffer = process.client("a", 60 * MIB, 1, "a")
    process.buffered.set(buffer, 0)
    process.client("b", 60 * MIB, 1, "b")
    assert (process.buffered.size, process.gone) == (60 * MIB, [])


def test_bytes_follow_their_owner() -> None:
    process = Process()
    a = process.client("a", 40 * MIB, None, None)
    process.now = 1.0
    process.client("b", 40 * MIB, 1, None)
    assert process.gone == []
    process.buffered.assign(a, 1, None)
    assert process.gone == [("a", "key")]


@pytest.mark.parametrize("owner", [1, "192.0.2.1"])
def test_owner_has_as_many_connections_as_allowed(owner: object) -> None:
    limit = ConnectionLimit(2)
    assert [limit.take(owner) for _ in range(3)] == [True, True, False]
    assert limit.take("another")
    limit.give_back(owner)
    assert limit.take(owner)


def test_connections_without_an_owner_have_no_limit() -> None:
    limit = ConnectionLimit(1)
    assert all(limit.take(None) for _ in range(3))
    limit.give_back(None)
