from __future__ import annotations

import asyncio
from functools import partial

import pytest

from jsonrpc.later import Later
from keys.unknown_keys import MAX_ADDRESSES, UnknownKeys
from tests.support.coroutines import scenario

PER_MINUTE = 30


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def unknown_keys(clock):
    return UnknownKeys(PER_MINUTE, clock=clock)


def exhaust(unknown_keys, address):
    """Count requests until one is rejected. Return the number of allowed ones."""
    for attempts in range(1000):
        if unknown_keys.count(address) is not None:
            return attempts
    return 1000


def test_attempts_are_so_many_at_once_and_then_so_many_a_minute(unknown_keys, clock):
    assert exhaust(unknown_keys, "203.0.113.7") == PER_MINUTE
    error = unknown_keys.count("203.0.113.7")
    assert (error.http_status, error.headers) == (429, {"Retry-After": "2"})
    clock.now += 2
    assert exhaust(unknown_keys, "203.0.113.7") == 1
    clock.now += 60
    assert exhaust(unknown_keys, "203.0.113.7") == PER_MINUTE


def test_refused_attempts_do_not_count(unknown_keys, clock):
    exhaust(unknown_keys, "203.0.113.7")
    for _ in range(500):
        unknown_keys.count("203.0.113.7")
    clock.now += 2
    assert unknown_keys.count("203.0.113.7") is None


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("203.0.113.7", "203.0.113.8", False),
        ("203.0.113.7", "::ffff:203.0.113.7", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_addresses_are_distinguished_ipv6_by_network(
    unknown_keys, one, other, are_same
):
    exhaust(unknown_keys, one)
    assert (unknown_keys.count(other) is not None) is are_same


@pytest.mark.parametrize(
    "address", [None, "127.0.0.1", "127.8.8.8", "::1", "no address"]
)
def test_loopback_addresses_are_not_counted(unknown_keys, address):
    assert exhaust(unknown_keys, address) == 1000


def test_zero_switches_the_limit_off():
    assert exhaust(UnknownKeys(0), "203.0.113.7") == 1000


def test_least_recent_address_is_evicted(unknown_keys):
    exhaust(unknown_keys, "203.0.113.7")
    exhaust(unknown_keys, "203.0.113.8")
    for number in range(MAX_ADDRESSES - 1):
        unknown_keys.count(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    # The least recent remaining one.
    assert unknown_keys.count("203.0.113.8") is not None
    assert unknown_keys.count("203.0.113.7") is None  # evicted


@scenario
async def test_lookups_of_an_address_over_the_limit_run_one_at_a_time(unknown_keys):
    in_flight = most = 0

    async def look_up(number):
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1
        return number

    def ask(number):
        return Later.from_coroutine(look_up(number))

    async def crowd(address):
        nonlocal most
        most = 0
        found = await asyncio.gather(
            *(unknown_keys.look_up(address, partial(ask, n)) for n in range(20))
        )
        assert found == list(range(20))
        return most

    assert await crowd("203.0.113.7") == 20
    exhaust(unknown_keys, "203.0.113.7")
    assert await crowd("203.0.113.7") == 1
    assert await crowd("203.0.113.8") == 20
