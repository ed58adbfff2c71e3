"""The latest failed calls of each key, and its unknown methods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.test import Client
from psycopg import AsyncConnection

from jsonrpc.errors import InvalidParams, unknown_method
from keys.limiter.errors import RateLimited
from keys.metering import failures
from keys.metering.failures import KEEP_NAMES_DAYS, MAX_FAILURES, MAX_NAMES, Failures
from keys.models import ApiKey, KeyFailures
from keys.services import (
    get_or_create_customer,
    issue_key,
    issue_version,
    set_allowlist,
)
from keys.usage.failures import MAX_UNKNOWN, failures_of
from networks.models import Network
from nodeapi.errors.execution import ExecutionFailed
from nodeapi.node import database_conninfo
from tests.support.live import live_service, request
from tests.support.rows import add_block, make_network, set_head
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

NOW = 1_800_000_000.0


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def network() -> Network:
    return make_network("alpha")


@pytest.fixture
def key() -> ApiKey:
    return issue_key(owner=get_or_create_customer(email="o@example.org")).api_key


def written(*collected: Failures) -> None:
    """Write failures to the database, as processes do."""

    async def write() -> None:
        async with await AsyncConnection.connect(
            database_conninfo(), autocommit=True
        ) as connection:
            for one in collected:
                await one.write(connection)

    asyncio.run(write())


def call_unknown(collected: Failures, key: ApiKey, network: Network, name: str) -> None:
    collected.note(key.pk, network.pk, name, unknown_method(name))


def test_latest_calls_of_all_processes_are_kept(
    clock: Clock, key: ApiKey, network: Network
) -> None:
    one, two = Failures(clock), Failures(clock)
    one.note(key.pk, network.pk, "eth_call", InvalidParams("0xsecret is wrong"))
    clock.now += 1
    two.note(key.pk, network.pk, "eth_getLogs", RateLimited(1, 1))
    written(two, one)
    clock.now += 1
    one.note(key.pk, 0, "", RateLimited(1, 1))
    written(one)
    found = failures_of(key).latest
    assert [(call.method, call.network, call.code, call.reason) for call in found] == [
        ("", "", -32005, "rate_limited"),
        ("eth_getLogs", network.name, -32005, "rate_limited"),
        ("eth_call", network.name, -32602, "invalid params"),
    ]
    assert [call.at.timestamp() - NOW for call in found] == [2, 1, 0]
    assert "secret" not in str(KeyFailures.objects.values())


def test_reverted_calls_are_distinguished_from_other_failed_executions(
    clock: Clock, key: ApiKey, network: Network
) -> None:
    collected = Failures(clock)
    collected.note(
        key.pk, network.pk, "eth_call", ExecutionFailed(-32000, "out of gas")
    )
    clock.now += 1
    collected.note(key.pk, network.pk, "eth_call", ExecutionFailed(3, "reverted"))
    written(collected)
    found = failures_of(key).latest
    assert [call.reason for call in found] == ["execution reverted", "execution failed"]
    assert {call.error for call in found} == {"ExecutionFailed"}


def test_number_of_calls_kept_is_limited(
    clock: Clock, key: ApiKey, network: Network
) -> None:
    collected = Failures(clock)
    for part in range(2):
        for number in range(MAX_FAILURES - 10):
            clock.now += 1
            collected.note(key.pk, network.pk, f"m{part}_{number}", InvalidParams())
        written(collected)
    methods = [call.method for call in failures_of(key).latest]
    assert len(methods) == MAX_FAILURES
    assert methods[0] == f"m1_{MAX_FAILURES - 11}"
    assert methods[-1] == f"m0_{MAX_FAILURES - 20}"
    for number in range(MAX_FAILURES + 5):
        collected.note(key.pk, network.pk, f"n_{number}", InvalidParams())
    written(collected)
    assert KeyFailures.objects.get().latest[0][2] == f"n_{MAX_FAILURES + 4}"
    assert len(KeyFailures.objects.get().latest) == MAX_FAILURES


def test_unknown_methods_are_counted_and_the_most_frequent_are_named(
    clock: Clock, key: ApiKey, network: Network
) -> None:
    one, two = Failures(clock), Failures(clock)
    for collected in (one, two):
        for _ in range(3):
            call_unknown(collected, key, network, "eth_getBlockbyHash")
    for number in range(MAX_UNKNOWN + 5):
        call_unknown(one, key, network, f"foo_{number}")
    clock.now += 60
    call_unknown(two, key, network, "bar_subscribe")
    written(one, two)
    found = failures_of(key).unknown
    assert len(found) == MAX_UNKNOWN
    first, second = found[:2]
    assert (first.name, first.calls) == ("eth_getBlockbyHash", 6)
    assert first.suggestion == "eth_getBlockByHash"
    assert (second.name, second.calls) == ("bar_subscribe", 1)
    assert second.last_at.timestamp() == NOW + 60
    methods = {call.method for call in failures_of(key).latest}
    assert "eth_getBlockbyHash" in methods


def test_known_methods_are_not_named_as_unknown(
    clock: Clock, key: ApiKey, network: Network
) -> None:
    collected = Failures(clock)
    collected.note(key.pk, network.pk, "eth_call", InvalidParams())
    written(collected)
    assert failures_of(key).unknown == []


def test_number_of_names_kept_is_limited_and_frequent_ones_stay(
    clock: Clock, key: ApiKey, network: Network
) -> None:
    collected = Failures(clock)
    for _ in range(2):
        call_unknown(collected, key, network, "often_called")
    for part in range(3):
        for number in range(MAX_NAMES):
            call_unknown(collected, key, network, f"random_{part}_{number}")
        written(collected)
        clock.now += 5
    names: dict[str, Any] = KeyFailures.objects.get().unknown_methods
    assert len(names) == MAX_NAMES
    assert names["often_called"][0] == 2
    assert "random_2_1" in names  # the latest of equally frequent ones


def test_name_that_is_no_longer_called_is_forgotten(
    clock: Clock, key: ApiKey, network: Network
) -> None:
    collected = Failures(clock)
    call_unknown(collected, key, network, "foo_former")
    written(collected)
    clock.now += KEEP_NAMES_DAYS * 86_400 + 1
    call_unknown(collected, key, network, "foo_new")
    written(collected)
    assert set(KeyFailures.objects.get().unknown_methods) == {"foo_new"}


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("", ""),
        ("\0", "⟨U+0000⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\u202elive", "⟨U+202E⟩live"),
        ("a\nb\tc", "a b c"),
        ("<script>", "<script>"),
        ("x" * 2000, "x" * 100),
        ('"}]', '"}]'),
    ],
)
def test_names_that_strangers_choose_are_stored_legibly(
    clock: Clock, key: ApiKey, network: Network, name: str, stored: str
) -> None:
    collected = Failures(clock)
    call_unknown(collected, key, network, name)
    written(collected)
    assert [one.name for one in failures_of(key).unknown] == [stored]
    assert [one.method for one in failures_of(key).latest] == [stored]


def test_what_waits_in_memory_is_limited(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "MAX_KEYS", 2)
    collected = Failures(clock)
    for number in (1, 2, 3, 1):
        collected.note(number, 0, "", InvalidParams())
    assert len(collected) == 2


def test_failures_of_deleted_keys_do_not_prevent_other_writes(
    clock: Clock, key: ApiKey, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "BATCH_KEYS", 1)
    collected = Failures(clock)
    collected.note(key.pk + 1, network.pk, "eth_call", InvalidParams())
    collected.note(key.pk, network.pk, "eth_call", InvalidParams())
    written(collected)
    assert KeyFailures.objects.get().api_key == key
    Network.objects.all().delete()
    assert [call.network for call in failures_of(key).latest] == [""]


def test_failed_calls_of_a_service_reach_the_page(
    network: Network, key: ApiKey
) -> None:
    add_block(network, "head", 1)
    set_head(network, "head", 1)
    client = Client()
    client.force_login(key.owner)
    with live_service() as live:
        secret = issue_version(api_key=key).secret
        live.secrets.append(secret)
        with live.api("alpha", secret) as api:
            api.send(request("eth_chainId"))
            api.send(request("eth_getBlockbyHash", "0xparameter"))
            api.send([request("eth_getBalance", "0xparameter"), request("foo_bar")])
            set_allowlist(api_key=key, kind="ip", values=["192.0.2.1"])
            wait_until(lambda: api.send(request("eth_chainId")).status_code == 403)
    # A process that stops writes its counts.
    calls = {
        (call.method, call.network, call.code, call.reason)
        for call in failures_of(key).latest
    }
    assert calls == {
        ("eth_getBlockbyHash", network.name, -32601, "method not found"),
        ("eth_getBalance", network.name, -32602, "invalid params"),
        ("foo_bar", network.name, -32601, "method not found"),
        ("", network.name, -32002, "ip_not_allowed"),
    }
    unknown = failures_of(key).unknown
    assert {one.name for one in unknown} == {"eth_getBlockbyHash", "foo_bar"}
    assert "parameter" not in str(KeyFailures.objects.values())
    page = client.get(f"/dashboard/keys/{key.pk}/usage").content.decode()
    assert "Did you mean <code>eth_getBlockByHash</code>?" in page
    assert "ip_not_allowed" in page
