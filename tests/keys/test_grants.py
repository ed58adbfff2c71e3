from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from channels.layers import channel_layers
from django.utils import timezone

from jsonrpc.errors import RpcError
from keys.errors import KeyDisabled, KeyExpired, KeyInvalid, KeyRevoked
from keys.format import make_key
from keys.grants import (
    FRESH_SECONDS,
    MAX_ENTRIES,
    OUTAGE_SECONDS,
    REFUSAL_SECONDS,
    Grants,
)
from keys.models import ApiKey, User
from keys.permits import Permit
from keys.services import (
    IssuedKey,
    grant_entitlement,
    issue_key,
    revoke_version,
    withdraw_entitlement,
)
from networks.models import Network
from nodeapi.node import database_conninfo
from outbox.streams import ACCESS
from outbox.subscriber import OnChange, OnReload, Subscriber
from postgres.connections import Connections
from postgres.errors import Unavailable
from tests.support.rows import make_network
from tests.support.serving import Serving, changes_unknown, serving

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """A clock that a test moves."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Announcements(Subscriber):
    """A subscriber of the outbox whose callbacks a test calls."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections, channel_layers.make_backend("default"))
        self.epoch = 1
        self.on_change: Callable[[str], None] = str
        self.lapse: Callable[[], None] = list

    def subscribe(
        self, stream: str, on_change: OnChange, on_reload: OnReload
    ) -> Callable[[], None]:
        assert stream == ACCESS
        self.on_change = on_change
        return list

    def at_lapse(self, callback: Callable[[], None]) -> None:
        self.lapse = callback

    def announce(self, api_key: ApiKey) -> None:
        self.on_change(f"key:{api_key.pk}")


class Door:
    """Grants with clocks, announcements and connections that the test controls."""

    def __init__(self, running: Serving) -> None:
        self.running = running
        self.clock = Clock()
        self.wall_clock = Clock(timezone.now().timestamp())
        self.connections = Connections(database_conninfo(), query_timeout=60)
        self.announcements = Announcements(self.connections)
        self.grants = Grants(
            self.connections,
            self.announcements,
            clock=self.clock,
            wall_clock=self.wall_clock,
        )

    def resolve(self, key: str) -> Any:
        return self.running.ask(self.grants.resolve, key)

    def at_once(self, key: str) -> Any:
        return self.running.at_once(self.grants.resolve, key)

    def has_to_wait(self, key: str) -> bool:
        """Return whether a key needs a look-up, and wait for its result."""

        async def resolve() -> bool:
            answer = self.grants.resolve(key)
            if answer.is_done:
                return False
            with suppress(RpcError):
                await answer
            return True

        return bool(self.running.ask(resolve))


@pytest.fixture
def door() -> Iterator[Door]:
    with serving() as running:
        door = Door(running)
        yield door
        running.ask(door.connections.close)


def issue(**fields: Any) -> IssuedKey:
    owner, _ = User.objects.get_or_create(email="owner@example.org")
    return issue_key(owner=owner, **fields)


def test_key_opens_what_was_granted(door: Door) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    issued = issue(networks=[alpha])
    grant = door.resolve(issued.secret)
    assert grant.api_key_id == issued.api_key.pk
    assert grant.hint == issued.version.hint
    assert grant.networks == {alpha.pk}
    assert grant.allows_network(alpha.pk)
    assert not grant.allows_network(beta.pk)
    assert grant.permits == {}
    assert grant.expires_at is None


def test_entitlements_come_with_the_key_each_with_its_terms(door: Door) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    issued, other = issue(), issue(may_trace=True)
    expires_at = timezone.now() + timedelta(days=1)
    grant_entitlement(
        api_key=issued.api_key,
        network=alpha,
        tracers=["callTracer", "muxTracer"],
        expires_at=expires_at,
    )
    assert door.resolve(issued.secret).permits == {
        (alpha.pk, "trace"): Permit(
            frozenset({"callTracer", "muxTracer"}), expires_at.timestamp()
        )
    }
    assert door.resolve(other.secret).permits == {
        (alpha.pk, "trace"): Permit(),
        (beta.pk, "trace"): Permit(),
    }


def test_permit_without_tracers_covers_all_and_ends_at_the_second() -> None:
    assert Permit().covers("callTracer")
    assert not Permit(frozenset({"muxTracer"})).covers("callTracer")
    assert not Permit().has_expired(1e12)
    assert not Permit(expires_at=1000.0).has_expired(999.999)
    assert Permit(expires_at=1000.0).has_expired(1000.0)


def test_key_without_networks_opens_all(door: Door) -> None:
    network: Network = make_network("alpha")
    grant = door.resolve(issue().secret)
    assert grant.networks is None
    assert grant.allows_network(network.pk)


def test_known_key_is_answered_at_once_until_it_is_no_longer_fresh(door: Door) -> None:
    issued = issue()
    first = door.resolve(issued.secret)
    door.clock.now += FRESH_SECONDS - 0.01
    assert door.at_once(issued.secret) is first
    door.clock.now += 0.02
    assert door.has_to_wait(issued.secret)
    assert door.at_once(issued.secret) == first


def test_malformed_and_unknown_keys_get_the_same_error(door: Door) -> None:
    answers = set()
    for key in (make_key(), make_key()[:-1] + "!", "", "nk_", "\ud800", "x" * 10_000):
        with pytest.raises(KeyInvalid) as caught:
            door.resolve(key)
        answers.add((caught.value.message, caught.value.http_status, caught.value.code))
    assert answers == {("invalid API key", 401, -32002)}


def test_malformed_key_costs_no_question(door: Door) -> None:
    with pytest.raises(KeyInvalid):
        door.at_once("nk_" + "0" * 36)


def test_unknown_key_is_remembered_for_a_while(door: Door) -> None:
    key = make_key()
    with pytest.raises(KeyInvalid):
        door.resolve(key)
    door.clock.now += REFUSAL_SECONDS - 0.01
    with pytest.raises(KeyInvalid):
        door.at_once(key)
    door.clock.now += 0.02
    assert door.has_to_wait(key)


def refused(door: Door, issued: IssuedKey) -> RpcError:
    with pytest.raises(RpcError) as caught:
        door.resolve(issued.secret)
    return caught.value


def test_refusals_say_why(door: Door) -> None:
    revoked, disabled, orphaned, expired = issue(), issue(), issue(), issue()
    revoke_version(version=revoked.version, reason="leaked")
    ApiKey.objects.filter(pk=disabled.api_key.pk).update(is_enabled=False)
    gone = User.objects.create(email="gone@example.org", is_active=False)
    ApiKey.objects.filter(pk=orphaned.api_key.pk).update(owner=gone)
    expired.version.expires_at = timezone.now().replace(
        year=2020, month=11, day=30, hour=0, minute=0, second=0, microsecond=0
    )
    expired.version.save()
    assert type(refused(door, revoked)) is KeyRevoked
    assert type(refused(door, disabled)) is KeyDisabled
    assert type(refused(door, orphaned)) is KeyDisabled
    error = refused(door, expired)
    assert type(error) is KeyExpired
    assert error.message == "this API key expired on 2020-11-30T00:00:00Z"
    assert error.details == {"expired_at": "2020-11-30T00:00:00Z"}


def test_expiry_is_noticed_at_the_second_although_the_key_is_remembered(
    door: Door,
) -> None:
    expires_at = timezone.now() + timedelta(hours=1)
    issued = issue(expires_at=expires_at)
    assert door.resolve(issued.secret).expires_at == expires_at.timestamp()
    door.wall_clock.now = expires_at.timestamp() - 0.001
    assert door.at_once(issued.secret)
    door.wall_clock.now = expires_at.timestamp()
    with pytest.raises(KeyExpired):
        door.at_once(issued.secret)


def test_refusal_is_repeated_from_memory_and_looked_up_again_soon(door: Door) -> None:
    issued = issue()
    ApiKey.objects.update(is_enabled=False)
    assert type(refused(door, issued)) is KeyDisabled
    with pytest.raises(KeyDisabled):
        door.at_once(issued.secret)
    ApiKey.objects.update(is_enabled=True)  # unannounced
    door.clock.now += REFUSAL_SECONDS
    assert door.resolve(issued.secret)


def test_revocation_takes_effect_without_waiting_for_the_memory_to_age() -> None:
    issued, other = issue(), issue()  # before a subscriber exists
    with serving() as running:
        grants = running.service.grants
        assert running.ask(grants.resolve, issued.secret)
        assert running.ask(grants.resolve, other.secret)
        revoke_version(version=issued.version, reason="leaked")
        running.until(lambda: not grants.is_cached(issued.secret))
        with pytest.raises(KeyRevoked):
            running.ask(grants.resolve, issued.secret)
        assert running.at_once(grants.resolve, other.secret)


def test_granting_and_withdrawing_act_without_waiting_for_the_memory_to_age() -> None:
    alpha = make_network("alpha")
    with serving() as running:
        grants = running.service.grants
        issued = issue()
        assert not running.ask(grants.resolve, issued.secret).permits
        entitlement = grant_entitlement(api_key=issued.api_key, network=alpha)
        running.until(lambda: not grants.is_cached(issued.secret))
        assert running.ask(grants.resolve, issued.secret).permits
        withdraw_entitlement(entitlement=entitlement)
        running.until(lambda: not grants.is_cached(issued.secret))
        assert not running.ask(grants.resolve, issued.secret).permits


def test_answer_that_was_under_way_during_a_change_is_not_remembered(
    door: Door,
) -> None:
    issued = issue()

    async def race() -> Any:
        waiting = asyncio.ensure_future(door.grants.resolve(issued.secret))
        await asyncio.sleep(0)  # the look-up is in progress by now
        door.announcements.announce(issued.api_key)
        return await waiting

    assert door.running.ask(race)
    assert not door.grants.is_cached(issued.secret)
    assert door.resolve(issued.secret)
    assert door.grants.is_cached(issued.secret)


def test_while_changes_may_be_unknown_every_key_is_looked_up(door: Door) -> None:
    issued = issue()
    assert door.resolve(issued.secret)
    assert not door.has_to_wait(issued.secret)
    door.announcements.epoch = 0
    door.announcements.lapse()
    assert door.has_to_wait(issued.secret)
    assert door.has_to_wait(issued.secret)
    revoke_version(version=issued.version, reason="in silence")
    with pytest.raises(KeyRevoked):
        door.resolve(issued.secret)
    door.running.ask(door.connections.close)
    with pytest.raises(KeyRevoked):  # the last read result is used in an outage
        door.resolve(issued.secret)


def test_after_changes_were_unknown_everything_is_looked_up_again() -> None:
    with serving() as running:
        grants, subscriber = running.service.grants, running.service.subscriber
        issued = issue()
        assert running.ask(grants.resolve, issued.secret)
        epoch = subscriber.epoch
        with changes_unknown(running):
            revoke_version(version=issued.version, reason="in silence")
        running.until(lambda: subscriber.epoch > epoch)
        with pytest.raises(KeyRevoked):
            running.ask(grants.resolve, issued.secret)


def test_during_an_outage_cached_keys_are_accepted_and_others_not(door: Door) -> None:
    issued, unseen = issue(), issue()
    grant = door.resolve(issued.secret)
    door.running.ask(door.connections.close)
    door.clock.now += FRESH_SECONDS + OUTAGE_SECONDS - 1
    assert door.resolve(issued.secret) == grant
    with pytest.raises(Unavailable):
        door.resolve(unseen.secret)
    with pytest.raises(KeyInvalid):
        door.resolve("malformed")
    door.clock.now += 2
    with pytest.raises(Unavailable):
        door.resolve(issued.secret)


def test_expired_key_is_refused_during_an_outage_as_well(door: Door) -> None:
    issued = issue(expires_at=timezone.now() + timedelta(minutes=1))
    door.resolve(issued.secret)
    door.running.ask(door.connections.close)
    door.clock.now += FRESH_SECONDS
    door.wall_clock.now += 61
    with pytest.raises(KeyExpired):
        door.resolve(issued.secret)


def test_memory_is_bounded_and_unknown_keys_push_no_known_one_out(door: Door) -> None:
    issued = issue()
    door.resolve(issued.secret)
    keys = [make_key() for _ in range(MAX_ENTRIES + 50)]
    outcomes = door.running.ask_all(*((door.grants.resolve, key) for key in keys))
    assert {type(outcome) for outcome in outcomes} == {KeyInvalid}
    assert not door.has_to_wait(keys[-1])
    assert door.has_to_wait(keys[0])  # evicted
    assert door.at_once(issued.secret)


def test_requests_with_one_new_key_share_a_question(door: Door) -> None:
    issued = issue()
    answers = door.running.ask_all(*[(door.grants.resolve, issued.secret)] * 20)
    assert len(set(map(str, answers))) == 1
    assert answers[0].hint == issued.version.hint
