from __future__ import annotations

import asyncio

import pytest

from keys.strangers import MAX_ADDRESSES, Strangers

PER_MINUTE = 30


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def strangers(clock):
    return Strangers(PER_MINUTE, clock=clock)


def exhaust(strangers, address):
    """Fail until that is too often; return how often it was not."""
    for attempts in range(1000):
        if strangers.failed(address) is not None:
            return attempts
    return 1000


def test_attempts_are_so_many_at_once_and_then_so_many_a_minute(strangers, clock):
    assert exhaust(strangers, "203.0.113.7") == PER_MINUTE
    told = strangers.failed("203.0.113.7")
    assert (told.http_status, told.headers) == (429, {"Retry-After": "2"})
    clock.now += 2
    assert exhaust(strangers, "203.0.113.7") == 1
    clock.now += 60
    assert exhaust(strangers, "203.0.113.7") == PER_MINUTE


def test_refused_attempts_do_not_count(strangers, clock):
    exhaust(strangers, "203.0.113.7")
    for _ in range(500):
        strangers.failed("203.0.113.7")
    clock.now += 2
    assert strangers.failed("203.0.113.7") is None


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("203.0.113.7", "203.0.113.8", False),
        ("203.0.113.7", "::ffff:203.0.113.7", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_addresses_are_told_apart_ipv6_by_networks(strangers, one, other, are_same):
    exhaust(strangers, one)
    assert (strangers.failed(other) is not None) is are_same


@pytest.mark.parametrize(
    "address", [None, "127.0.0.1", "127.8.8.8", "::1", "no address"]
)
def test_this_machine_is_not_counted(strangers, address):
    assert exhaust(strangers, address) == 1000


def test_nobody_is_counted_where_that_is_switched_off():
    assert exhaust(Strangers(0), "203.0.113.7") == 1000


def test_the_latest_addresses_are_remembered_and_no_more(strangers):
    exhaust(strangers, "203.0.113.7")
    exhaust(strangers, "203.0.113.8")
    for number in range(MAX_ADDRESSES - 1):
        strangers.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(strangers._visitors) == MAX_ADDRESSES
    assert strangers.failed("203.0.113.8") is not None  # the oldest one left
    assert strangers.failed("203.0.113.7") is None  # was forgotten
    assert len(strangers._visitors) == MAX_ADDRESSES


def test_look_ups_wait_for_each_other_once_an_address_fails_too_often(strangers):
    under_way = most = 0

    async def look_up(number):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return number

    async def crowd(address):
        nonlocal most
        most = 0
        found = await asyncio.gather(
            *(strangers.look_up(address, look_up(n)) for n in range(20))
        )
        assert found == list(range(20))
        return most

    async def scenario():
        assert await crowd("203.0.113.7") == 20
        exhaust(strangers, "203.0.113.7")
        assert await crowd("203.0.113.7") == 1
        assert await crowd("203.0.113.8") == 20

    asyncio.run(scenario())
