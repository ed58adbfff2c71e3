"""The life of a key, from its creation to its deletion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from keys.format import is_well_formed
from keys.models import ApiKey, EventType, KeyEvent, KeyVersion, User
from keys.services import (
    MAX_LIVE_VERSIONS,
    OVERLAPS,
    Actor,
    IssuedKey,
    create_key,
    delete_key,
    disable_key,
    enable_key,
    get_or_create_customer,
    grant_entitlement,
    issue_key,
    issue_version,
    note_activation,
    note_use_after_revocation,
    reveal_key,
    revoke_version,
    roll_key,
    update_key,
    withdraw_entitlement,
)
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture
def owner() -> User:
    return get_or_create_customer(email="owner@example.org")


@pytest.fixture
def issued(owner: User) -> IssuedKey:
    return issue_key(owner=owner, name="dapp")


def types() -> list[str]:
    """Return the events' types, the oldest first."""
    return list(KeyEvent.objects.order_by("id").values_list("type", flat=True))


def test_key_is_revealed_once(owner: User) -> None:
    api_key = create_key(owner=owner)
    assert not api_key.versions.exists()
    issued = reveal_key(api_key=api_key, actor=Actor(owner, "192.0.2.7"))
    assert is_well_formed(issued.secret)
    with pytest.raises(ValidationError, match="Roll it to get a new"):
        reveal_key(api_key=api_key)
    revoke_version(version=issued.version, reason="leaked")
    with pytest.raises(ValidationError, match="Roll it to get a new"):
        reveal_key(api_key=api_key)
    event = KeyEvent.objects.get(type=EventType.REVEALED)
    assert (event.actor, event.actor_ip) == (owner, "192.0.2.7")
    assert event.data == {"hint": issued.version.hint, "expires_at": None}


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_rolled_secret_lives_as_long_as_was_chosen(
    issued: IssuedKey, overlap: timedelta
) -> None:
    before = timezone.now()
    rolled = roll_key(api_key=issued.api_key, overlap=overlap)
    assert rolled.secret != issued.secret
    assert rolled.version.expires_at is None
    issued.version.refresh_from_db()
    ends = issued.version.expires_at
    assert ends is not None
    assert before <= ends - overlap <= timezone.now()
    live = {rolled.version} | ({issued.version} if overlap else set())
    assert set(KeyVersion.objects.live()) == live
    event = KeyEvent.objects.get(type=EventType.ROLLED)
    assert event.data == {
        "hint": rolled.version.hint,
        "replaced": [issued.version.hint],
        "replaced_until": ends.isoformat(),
    }


def test_rolling_gives_no_secret_more_time_than_it_had(issued: IssuedKey) -> None:
    roll_key(api_key=issued.api_key, overlap=HOUR)
    first = KeyVersion.objects.get(pk=issued.version.pk).expires_at
    roll_key(api_key=issued.api_key, overlap=timedelta(days=7))
    assert KeyVersion.objects.get(pk=issued.version.pk).expires_at == first


def test_key_has_three_live_secrets_at_most(issued: IssuedKey) -> None:
    for _ in range(MAX_LIVE_VERSIONS - 1):
        roll_key(api_key=issued.api_key, overlap=HOUR)
    with pytest.raises(ValidationError, match="at most 3 valid secrets"):
        roll_key(api_key=issued.api_key, overlap=HOUR)
    with pytest.raises(ValidationError, match="at most 3 valid secrets"):
        issue_version(api_key=issued.api_key)
    assert KeyVersion.objects.count() == MAX_LIVE_VERSIONS
    roll_key(api_key=issued.api_key, overlap=timedelta(0))
    assert KeyVersion.objects.live().count() == 1


def test_overlap_that_is_not_offered_and_key_without_secret_are_not_rolled(
    owner: User, issued: IssuedKey
) -> None:
    with pytest.raises(ValidationError, match="Choose one of these overlaps"):
        roll_key(api_key=issued.api_key, overlap=timedelta(days=365))
    with pytest.raises(ValidationError, match="Reveal it first"):
        roll_key(api_key=create_key(owner=owner))
    assert KeyVersion.objects.count() == 1


def test_expiry_of_a_key_ends_all_its_secrets_also_rolled_ones(
    issued: IssuedKey,
) -> None:
    soon = timezone.now() + HOUR
    update_key(api_key=issued.api_key, expires_at=soon)
    rolled = roll_key(api_key=issued.api_key, overlap=HOUR)
    assert issued.api_key.versions.live().count() == 2
    ApiKey.objects.update(expires_at=timezone.now())
    assert not KeyVersion.objects.live().exists()
    update_key(api_key=rolled.api_key, expires_at=None)
    assert rolled.version in KeyVersion.objects.live()


def test_rolling_an_expired_key_ends_its_old_secrets(issued: IssuedKey) -> None:
    ApiKey.objects.update(expires_at=timezone.now())
    rolled = roll_key(api_key=issued.api_key, overlap=timedelta(0))
    update_key(api_key=issued.api_key, expires_at=None)
    assert list(KeyVersion.objects.live()) == [rolled.version]


def test_revocation_is_final_in_python_and_in_the_database(issued: IssuedKey) -> None:
    version = revoke_version(version=issued.version, reason="leaked")
    version.revoke_reason = "told apart"
    version.save()
    for moment in (None, timezone.now()):
        version.revoked_at = moment
        with pytest.raises(ValidationError, match="A revoked secret"):
            version.save()
        with pytest.raises(IntegrityError, match="final"), transaction.atomic():
            KeyVersion.objects.filter(pk=version.pk).update(revoked_at=moment)
    assert not KeyVersion.objects.live().exists()


def test_disabling_is_undone_and_said_once(issued: IssuedKey) -> None:
    for _ in range(2):
        assert not disable_key(api_key=issued.api_key, reason="abuse").is_enabled
    for _ in range(2):
        assert enable_key(api_key=issued.api_key).is_enabled
    assert types()[2:] == ["key.disabled", "key.enabled"]
    assert KeyEvent.objects.get(type=EventType.DISABLED).data == {"reason": "abuse"}


def test_deleted_key_is_over_for_good_and_its_past_is_kept(issued: IssuedKey) -> None:
    deleted = delete_key(api_key=issued.api_key)
    assert not ApiKey.objects.kept().exists()
    assert not KeyVersion.objects.live().exists()
    assert types() == ["key.created", "key.revealed", "key.deleted"]
    for change in (enable_key, roll_key, delete_key, update_key, issue_version):
        with pytest.raises(ValidationError, match="was deleted"):
            change(api_key=deleted)
    with pytest.raises(ProtectedError):
        deleted.delete()


def test_every_change_has_its_event_and_no_change_has_none(owner: User) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    actor = Actor(owner, "2001:db8::1")
    api_key = create_key(owner=owner, name="a", networks=[alpha], actor=actor)
    update_key(api_key=api_key, name="a", networks=[alpha], staff_note="", actor=actor)
    assert types() == ["key.created"]
    update_key(
        api_key=api_key, name="b", networks=[beta, alpha], staff_note="x", actor=actor
    )
    entitlement = grant_entitlement(api_key=api_key, network=alpha, actor=actor)
    grant_entitlement(
        api_key=api_key, network=alpha, tracers=["callTracer"], actor=actor
    )
    withdraw_entitlement(entitlement=entitlement, actor=actor)
    owner.is_active = False
    owner.save()
    note_activation(user=owner, actor=actor)
    assert types()[1:] == [
        "key.updated",
        "key.annotated",
        "entitlement.granted",
        "entitlement.changed",
        "entitlement.revoked",
        "owner.disabled",
    ]
    assert {(e.actor, e.actor_ip) for e in KeyEvent.objects.all()} == {
        (owner, "2001:db8::1")
    }
    assert KeyEvent.objects.get(type="key.updated").data == {
        "name": ["a", "b"],
        "networks": [["alpha"], ["alpha", "beta"]],
    }
    shown = KeyEvent.objects.for_customers().values_list("type", flat=True)
    assert "key.annotated" not in shown
    assert len(shown) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda event: KeyEvent.objects.filter(pk=event.pk).update(data={}),
        lambda event: KeyEvent.objects.filter(pk=event.pk)._raw_delete("default"),
    ],
)
def test_database_refuses_to_change_an_event(
    issued: IssuedKey, change: Callable[[KeyEvent], Any]
) -> None:
    event = KeyEvent.objects.latest("id")
    refusal = pytest.raises(IntegrityError, match="neither changed nor deleted")
    with refusal, transaction.atomic():
        change(event)
    for refused in (event.save, event.delete):
        with pytest.raises(TypeError):
            refused()
    assert types() == ["key.created", "key.revealed"]


@pytest.mark.parametrize(
    "tables",
    ["keys_keyevent", "keys_memberevent", "keys_apikey CASCADE", "keys_user CASCADE"],
)
@pytest.mark.django_db(transaction=True)  # a test's transaction has pending triggers
def test_database_refuses_to_truncate_events(issued: IssuedKey, tables: str) -> None:
    refusal = pytest.raises(IntegrityError, match="neither changed nor deleted")
    with refusal, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables}")
    assert types() == ["key.created", "key.revealed"]


def test_change_that_fails_leaves_no_event(owner: User, issued: IssuedKey) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        disable_key(api_key=issued.api_key)
        raise RuntimeError
    assert types() == ["key.created", "key.revealed"]
    assert ApiKey.objects.get().is_enabled


def test_use_after_revocation_is_put_on_record_once_a_day(issued: IssuedKey) -> None:
    for ip in ("192.0.2.1", "192.0.2.2"):
        note_use_after_revocation(version_id=issued.version.pk, ip=ip)
    event = KeyEvent.objects.get(type=EventType.USED_AFTER_REVOCATION)
    assert event.actor_ip == "192.0.2.1"
    assert event.data == {"version": issued.version.pk, "hint": issued.version.hint}
    yesterday = timezone.now() - timedelta(days=1)
    other = issue_version(api_key=issued.api_key).version
    KeyEvent.objects.create(
        api_key=issued.api_key,
        type=EventType.USED_AFTER_REVOCATION,
        at=yesterday,
        data={"version": other.pk},
    )
    note_use_after_revocation(version_id=other.pk, ip=None)
    assert KeyEvent.objects.filter(type=EventType.USED_AFTER_REVOCATION).count() == 3


def test_no_event_holds_a_secret(owner: User) -> None:
    issued = issue_key(owner=owner)
    rolled = roll_key(api_key=issued.api_key)
    revoke_version(version=rolled.version, reason="x")
    text = str(list(KeyEvent.objects.values()))
    for secret in (issued.secret, rolled.secret):
        assert secret[7:-4] not in text
