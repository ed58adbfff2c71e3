"""Clients that repeat refused requests, after `Retry-After` or their own delay."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from django.db import connection

from keys.models import ApiKey
from keys.services.limits import set_limits
from tests.clients.conftest import Desk
from tests.clients.programs import Answer, Cast, Curl, Ethers, Viem
from tests.support import web
from tests.support.live import request
from tests.support.refusals import CHAIN_ID, RECEIPTS
from tests.support.waiting import wait_until

RATE_LIMITED = Answer(None, -32005, "request rate exceeded: 2 credits per second")
UNAVAILABLE = Answer(None, -32603, "service temporarily unavailable", 503)


def exhausted(desk: Desk) -> str:
    """Return a URL where the next requests for RECEIPTS are rejected for about 5 s."""
    secret = desk.live.new_key()
    set_limits(api_key=ApiKey.objects.latest("id"), credits_per_second=2, burst=100)
    url = f"{desk.live.base_url}/alpha/v3/{secret}"
    assert web.post(url, json=[RECEIPTS] * 10).status_code == 200
    return url


def statuses(desk: Desk, headers: dict[str, str]) -> list[int]:
    return [line["status"] for line in desk.seen(headers)]


def test_viem_repeats_after_the_given_time(desk: Desk, viem: Viem) -> None:
    viem.ask(desk.url("plain"), [CHAIN_ID], {})
    headers = desk.headers()
    (answer,) = viem.ask(exhausted(desk), [RECEIPTS], headers)
    assert len(answer.result) == 3
    assert statuses(desk, headers) == [429, 200]


def test_curl_repeats_after_the_given_time(desk: Desk, curl: Curl) -> None:
    headers = desk.headers()
    options = ("--fail", "--retry", "3")
    (answer,) = curl.ask(exhausted(desk), [RECEIPTS], headers, *options)
    assert len(answer.result) == 3
    assert statuses(desk, headers) == [429, 200]


def test_ethers_takes_seconds_for_milliseconds(desk: Desk, ethers: Ethers) -> None:
    """ethers sends twelve requests at once, then reports the error. It invents status 599."""
    ethers.ask(desk.url("plain"), [CHAIN_ID], {})
    headers = desk.headers()
    answers = ethers.ask(exhausted(desk), [RECEIPTS], headers)
    assert answers == [RATE_LIMITED._replace(status=599)]
    assert statuses(desk, headers) == [429] * Ethers.ATTEMPTS


def test_ethers_waits_when_its_function_for_that_does(
    desk: Desk, ethers: Ethers
) -> None:
    """The function is that of docs/clients.md. ethers adds its own delay, in ms."""
    ethers.ask(desk.url("plain"), [CHAIN_ID], {})
    headers = desk.headers()
    (answer,) = ethers.ask(exhausted(desk), [RECEIPTS], headers, patient=True)
    assert len(answer.result) == 3
    assert statuses(desk, headers) == [429, 200]


def test_cast_comes_again_each_08_seconds(desk: Desk, cast: Cast) -> None:
    headers = desk.headers()
    (answer,) = cast.ask(exhausted(desk), [RECEIPTS], headers)
    assert len(answer.result) == 3
    *refused, last = statuses(desk, headers)
    assert set(refused) == {429}
    assert last == 200
    assert len(refused) < Cast.ATTEMPTS


def test_cast_gives_up_after_eight_repetitions(desk: Desk, cast: Cast) -> None:
    url = desk.url("poor")
    assert web.post(url, json=[RECEIPTS] * 10).status_code == 200
    headers = desk.headers()
    message = "request rate exceeded: 1 credits per second"
    assert cast.ask(url, [RECEIPTS], headers) == [Answer(None, -32005, message, 429)]
    assert statuses(desk, headers) == [429] * Cast.ATTEMPTS


def never_asked_for() -> dict[str, Any]:
    """Return a call whose response is not cached."""
    return request("eth_getStorageAt", "0x" + token_hex(20), "0x0", "latest")


@contextmanager
def no_database(desk: Desk) -> Iterator[None]:
    """Make the database unavailable to the service during the `with` block."""
    settings = connection.get_connection_params()
    name = settings["dbname"]
    with psycopg.connect(
        **{**settings, "dbname": "postgres", "context": None}, autocommit=True
    ) as admin:
        admin.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
        try:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s",
                [name],
            )
            connection.close()
            yield
        finally:
            admin.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')
    url = desk.url("plain")
    wait_until(lambda: web.post(url, json=never_asked_for()).status_code == 200)


@pytest.mark.parametrize("client", ["viem", "cast"])
def test_service_without_a_database_is_asked_again(
    desk: Desk, client: str, request: pytest.FixtureRequest
) -> None:
    program: Viem | Cast = request.getfixturevalue(client)
    program.ask(desk.url("plain"), [CHAIN_ID], {})
    headers = desk.headers()
    call = never_asked_for()
    with ThreadPoolExecutor() as threads:
        with no_database(desk):
            asking = threads.submit(program.ask, desk.url("plain"), [call], headers)
            wait_until(lambda: headers["x-request-id"] in desk.live.log())
        assert asking.result() == [Answer("0x" + "00" * 32)]
    *refused, last = statuses(desk, headers)
    assert set(refused) == {503}
    assert last == 200


def test_ethers_gives_up_on_a_service_without_a_database(
    desk: Desk, ethers: Ethers
) -> None:
    headers = desk.headers()
    with no_database(desk):
        assert ethers.ask(desk.url("plain"), [never_asked_for()], headers) == [
            UNAVAILABLE
        ]
    assert statuses(desk, headers) == [503]
