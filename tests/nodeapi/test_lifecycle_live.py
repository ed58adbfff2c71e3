"""Keys that are rolled, revoked, disabled and enabled, over HTTP with two processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from keys.models import ApiKey, EventType, KeyEvent, KeyVersion
from keys.services import (
    announce_key,
    delete_key,
    disable_key,
    enable_key,
    issue_version,
    revoke_version,
    roll_key,
)
from tests.support import chains, sample
from tests.support.live import Api, Live, api_key_of, live_service, request
from tests.support.waiting import wait_until

WORKERS = 2


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    chains.import_blocks("alpha", sample.genesis(), sample.raw_blocks()[:2])
    with live_service(WORKERS) as live:
        yield live


@pytest.fixture
def issued(live: Live) -> tuple[str, ApiKey]:
    secret = live.new_key()
    return secret, api_key_of(secret)


def refusal(api: Api) -> tuple[int, dict[str, Any]]:
    """Make a rejected call alone and in a batch. Return HTTP status and error object."""
    alone = api.send(request("eth_chainId"))
    batch = api.send([{**request("eth_chainId"), "id": n} for n in (5, 6)])
    assert alone.status_code == batch.status_code
    assert [answer["id"] for answer in batch.json()] == [5, 6]
    errors = [answer["error"] for answer in batch.json()]
    assert errors == [alone.json()["error"]] * 2
    assert alone.headers["content-type"] == "application/json"
    return alone.status_code, errors[0]


def test_change_acts_in_every_process_while_the_key_is_in_use(
    live: Live, issued: tuple[str, ApiKey]
) -> None:
    secret, api_key = issued
    with live.each_worker("alpha", secret) as apis:
        assert len(apis) == WORKERS

        def all_say(status: int) -> Callable[[], bool]:
            return lambda: (
                {api.send(request("eth_chainId")).status_code for api in apis}
                == {status}
            )

        for _ in range(5):
            disable_key(api_key=api_key)
            wait_until(all_say(403))
            enable_key(api_key=api_key)
            wait_until(all_say(200))


def test_old_secret_works_until_the_overlap_ends_and_not_after(
    live: Live, issued: tuple[str, ApiKey]
) -> None:
    secret, api_key = issued
    with live.api("alpha", secret) as old:
        old.result("eth_chainId")
        rolled = roll_key(api_key=api_key, overlap=timedelta(hours=1))
        live.secrets.append(rolled.secret)
        with live.api("alpha", rolled.secret) as new:
            wait_until(lambda: new.send(request("eth_chainId")).status_code == 200)
        assert old.send(request("eth_chainId")).status_code == 200
        # Let the rest of the hour pass.
        ends = timezone.now() + timedelta(seconds=3)
        version = KeyVersion.objects.exclude(expires_at=None).get(api_key=api_key)
        version.expires_at = ends
        version.save()
        announce_key(api_key)
        with live.api("alpha", rolled.secret) as new:
            asked = timezone.now()
            while old.send(request("eth_chainId")).status_code == 200:
                assert asked < ends
                new.result("eth_chainId")
                asked = timezone.now()
            new.result("eth_chainId")
            assert timezone.now() >= ends
            status, told = refusal(old)
    moment = f"{ends:%Y-%m-%dT%H:%M:%SZ}"
    assert (status, told["code"]) == (401, -32002)
    assert told["message"] == f"this API key expired on {moment}"
    assert told["data"]["reason"] == "key_expired"


def expire(api_key: ApiKey) -> None:
    """Let a key's own expiry pass."""
    ApiKey.objects.filter(pk=api_key.pk).update(expires_at=timezone.now())
    announce_key(api_key)


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (lambda api_key: disable_key(api_key=api_key), 403, "key_disabled"),
        (expire, 401, "key_expired"),
        (lambda api_key: delete_key(api_key=api_key), 401, "key_revoked"),
    ],
)
def test_refusals_say_what_became_of_a_key(
    live: Live,
    issued: tuple[str, ApiKey],
    change: Callable[[ApiKey], object],
    status: int,
    reason: str,
) -> None:
    secret, api_key = issued
    with live.api("alpha", secret) as api:
        api.result("eth_chainId")
        change(api_key)
        wait_until(lambda: api.send(request("eth_chainId")).status_code == status)
        # The other process, which gets the event a moment later, may answer the batch.
        wait_until(lambda: api.send([request("eth_chainId")]).status_code == status)
        told, error = refusal(api)
    assert (told, error["code"]) == (status, -32002)
    assert error["data"]["reason"] == reason
    assert error["data"]["see"] == f"{live.base_url}/docs/errors#{reason}"


def test_use_after_revocation_is_on_record_once_for_all_processes(
    live: Live, issued: tuple[str, ApiKey]
) -> None:
    secret, api_key = issued
    other = issue_version(api_key=api_key)
    live.secrets.append(other.secret)
    with live.each_worker("alpha", secret) as apis:
        revoke_version(version=api_key.versions.earliest("id"), reason="leaked")
        for _ in range(3):
            for api in apis:
                wait_until(lambda: api.send(request("eth_chainId")).status_code == 401)  # noqa: B023  # called at once
    events = KeyEvent.objects.filter(
        api_key=api_key, type=EventType.USED_AFTER_REVOCATION
    )
    wait_until(events.exists)
    event = events.get()
    assert event.actor_ip == "127.0.0.1"
    assert event.data["hint"] == f"{secret[:7]}…{secret[-4:]}"
    with live.api("alpha", other.secret) as api:
        api.result("eth_chainId")


def test_change_acts_on_requests_whose_heads_are_known(
    live: Live, issued: tuple[str, ApiKey]
) -> None:
    secret, api_key = issued
    with Api(live.base_url, f"/alpha/v3/{secret}") as api:

        def status() -> int:
            return api.send(request("eth_chainId")).status_code

        assert [status() for _ in range(5)] == [200] * 5
        disable_key(api_key=api_key)
        wait_until(lambda: status() == 403)
        enable_key(api_key=api_key)
        wait_until(lambda: status() == 200)
        for version in KeyVersion.objects.filter(api_key=api_key):
            revoke_version(version=version, reason="lost")
        wait_until(lambda: status() == 401)
