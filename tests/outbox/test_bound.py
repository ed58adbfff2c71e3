"""A committed change takes effect within two seconds, even if messages are lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from keys.errors import KeyRevoked
from keys.models import Plan, User
from keys.services import (
    IssuedKey,
    grant_entitlement,
    issue_key,
    revoke_version,
    set_allowlist,
    update_key,
    withdraw_entitlement,
)
from keys.services.limits import set_limits, set_plan
from outbox.redis_address import channel_layer_host
from outbox.subscriber import VERIFIED_SECONDS
from tests.support.redis_server import OwnRedis, own_redis
from tests.support.rows import make_network, set_head
from tests.support.serving import Serving, serving
from tests.support.waiting import loop_turns
from tests.support.wallet import BY_USER, new_user
from wallets.changes import announce_dapp
from wallets.models import DappKind
from wallets.services.pairing import pair_dapp
from wallets.serving.watch import Watch

pytestmark = pytest.mark.django_db(transaction=True)

PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"


def stay_up(redis: OwnRedis, ended: threading.Event) -> None:
    ended.wait()


def stay_down(redis: OwnRedis, ended: threading.Event) -> None:
    redis.stop()
    ended.wait()
    redis.start()


def restart(redis: OwnRedis, ended: threading.Event) -> None:
    while not ended.wait(0.3):
        redis.stop()
        ended.wait(0.3)
        redis.start()


@contextmanager
def fault(redis: OwnRedis, happen: Callable[..., None]) -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(target=happen, args=(redis, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def takes_effect(running: Serving, change: Callable[[], Any], condition: Any) -> None:
    """Make a change, and measure for how long older data count as current.

    On a slow machine, the epoch ends and everything is read again.
    """
    subscriber = running.service.subscriber
    running.until(lambda: subscriber.epoch)
    epoch = subscriber.epoch
    change()
    bound = time.monotonic() + VERIFIED_SECONDS

    async def is_known() -> bool:
        found = condition()
        if await found if isinstance(found, Awaitable) else found:
            return True
        if time.monotonic() > bound:
            await loop_turns()  # the end of the epoch may be due
            assert subscriber.epoch != epoch, "older data count as current"
        return False

    running.until(is_known)


@pytest.mark.parametrize(
    ("backend", "happen", "rounds"),
    [
        (PUBSUB, stay_up, 1),
        (PUBSUB, stay_down, 1),
        (PUBSUB, restart, 3),
        ("tests.outbox.layers.Unreliable", stay_up, 3),
    ],
    ids=["up", "down", "restarting", "dropping"],
)
def test_changes_take_effect_within_the_bound(
    settings: Any, backend: str, happen: Callable[..., None], rounds: int
) -> None:
    """Rounds differ if messages are lost by chance."""
    network = make_network("alpha")
    set_head(network, "0", 0)
    dapp = pair_dapp(
        user=new_user(), kind=DappKind.WEB, ident="https://p.example", cause=BY_USER
    )
    with own_redis() as redis:
        config = {"hosts": [channel_layer_host(redis.url)]}
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": config}}
        with serving() as running:
            running.until(lambda: running.service.subscriber.has_messages)
            calls: list[None] = []
            watch = Watch(running.service.subscriber)
            watch.subscribe_dapp(dapp, lambda: calls.append(None))
            running.until(lambda: calls)
            with fault(redis, happen):
                for number in range(1, rounds + 1):
                    head_moves(running, network, number)
                    key_changes(running, network)
                    takes_effect(
                        running,
                        lambda: (calls.clear(), announce_dapp(dapp)),
                        lambda: calls,
                    )


def head_moves(running: Serving, network: Any, number: int) -> None:
    directory = running.service.directory
    takes_effect(
        running,
        lambda: set_head(network, str(number), number),
        lambda: directory.get(network.pk).head_number == number,
    )


def key_changes(running: Serving, network: Any) -> None:
    grants = running.service.grants
    issued = issue()
    later = timezone.now() + timedelta(days=1)
    changes: list[Callable[[], Any]] = [
        lambda: grant_entitlement(api_key=issued.api_key, network=network),
        lambda: withdraw_entitlement(entitlement=issued.api_key.entitlements.get()),
        lambda: update_key(api_key=issued.api_key, expires_at=later),
        lambda: set_allowlist(api_key=issued.api_key, kind="ip", values=["192.0.2.1"]),
        lambda: set_limits(api_key=issued.api_key, burst=700),
        lambda: revoke_version(version=issued.version, reason="leaked"),
    ]
    for change in changes:
        assert running.ask(grants.resolve, issued.secret)
        takes_effect(running, change, lambda: not grants.is_cached(issued.secret))
    with pytest.raises(KeyRevoked):
        running.ask(grants.resolve, issued.secret)
    other = issue()

    async def has_new_limits() -> bool:
        limits = (await grants.resolve(other.secret)).limits
        return limits is not None and limits.burst == 900

    assert not running.ask(has_new_limits)
    takes_effect(
        running,
        lambda: set_plan(slug="p", name="P", burst=900, is_default=True),
        has_new_limits,
    )
    Plan.objects.all().delete()


def issue() -> IssuedKey:
    owner, _ = User.objects.get_or_create(email="owner@example.org")
    return issue_key(owner=owner)
