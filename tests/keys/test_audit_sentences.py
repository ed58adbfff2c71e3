"""Events of the audit log as sentences."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from keys.audit_sentences import SHOWN_CHARACTERS, sentence_of
from keys.models import EventType, KeyEvent, User
from keys.services import (
    Actor,
    create_key,
    delete_key,
    disable_key,
    enable_key,
    grant_entitlement,
    issue_key,
    issue_token,
    request_access,
    revoke_version,
    roll_key,
    set_allowlist,
    update_key,
    withdraw_entitlement,
)
from keys.services.access import approve_access
from keys.services.limits import set_limits, set_plan
from keys.services.secrets import note_use_after_revocation
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db

LATER = datetime(2999, 1, 2, 3, 4, tzinfo=UTC)


def said() -> str:
    """Return the newest event as a sentence."""
    return str(sentence_of(KeyEvent.objects.latest("id")))


def test_events_read_as_sentences() -> None:
    alice = User.objects.create_user("alice@example.org", first_name="Alice")
    bob = User.objects.create_user("bob@example.org")
    network = make_network("alpha")
    actor = Actor(alice, "10.0.0.1")
    issued = issue_key(owner=bob, name="prod", actor=actor)
    key, end = issued.api_key, issued.version.hint[-4:]
    name = f"prod (…{end}) of bob@example.org"
    assert said() == f"Alice revealed the secret of key {name} from 10.0.0.1"

    rolled = roll_key(api_key=key, actor=actor)
    new = f"prod (…{rolled.version.hint[-4:]}) of bob@example.org"
    until = f"; …{end} stays valid until 2"
    assert said().startswith(f"Alice rolled key {new} from 10.0.0.1{until}")

    revoke_version(version=issued.version, reason="leaked", actor=actor)
    assert said() == (f"Alice revoked a secret of key {name} from 10.0.0.1: “leaked”")
    note_use_after_revocation(version_id=issued.version.pk, ip="192.0.2.9")
    assert said() == f"A client used a revoked secret of key {name} from 192.0.2.9"

    update_key(api_key=key, name="live", networks=[network], expires_at=LATER)
    new = new.replace("prod", "live")
    key.refresh_from_db()
    assert said() == (
        f"The service changed key {new}: name from prod to live; networks from all to"
        " alpha; expires from none to 2999-01-02 03:04 UTC"
    )
    grant = grant_entitlement(
        api_key=key, network=network, tracers=["callTracer"], expires_at=LATER
    )
    assert said() == (
        f"The service granted tracing to key {new} on alpha (callTracer) until"
        " 2999-01-02 03:04 UTC"
    )
    withdraw_entitlement(entitlement=grant)
    assert said() == f"The service withdrew tracing from key {new} on alpha"
    asked = request_access(api_key=key, network=network, reason="to debug")
    assert said() == (
        f"The service requested tracing for key {new} on alpha (all tracers)"
    )
    approve_access(request=asked, answer="Have fun", actor=actor)
    assert said() == (
        f"Alice approved the request for tracing of key {new} on alpha (all tracers)"
        " from 10.0.0.1: “Have fun”"
    )
    plan, _ = set_plan(slug="growth", name="Growth", credits_per_second=100)
    set_limits(api_key=key, plan=plan, burst=200_000)
    assert said() == (
        f"The service changed the limits of key {new}: plan from none to growth; burst"
        " from none to 200,000"
    )
    set_allowlist(api_key=key, kind="ip", values=["192.0.2.7"])
    assert said() == (
        f"The service changed the allowlists of key {new}: added ip 192.0.2.7/32"
    )
    disable_key(api_key=key, reason="unpaid")
    assert said() == f"The service disabled key {new}: “unpaid”"
    enable_key(api_key=key)
    assert said() == f"The service enabled key {new}"
    boss = User.objects.create_superuser("boss@example.org")
    token = issue_token(owner=boss, name="billing", scopes=["keys:read"]).token
    delete_key(api_key=key, actor=Actor(boss, None, token))
    assert said() == (
        f"boss@example.org, with the token billing ({token.hint}), deleted key {new}"
    )


def test_role_of_a_member_is_named() -> None:
    alice = User.objects.create_user("alice@example.org")
    key = create_key(owner=User.objects.create_user("bob@example.org"), name="prod")
    event = KeyEvent(
        api_key=key, type="key.enabled", actor=alice, actor_role="developer"
    )
    assert str(sentence_of(event)) == (
        "alice@example.org (developer) enabled key prod of bob@example.org"
    )


def test_each_type_of_event_is_a_sentence() -> None:
    key = create_key(owner=User.objects.create_user("bob@example.org"), name="prod")
    for kind in EventType.values:
        event = KeyEvent(api_key=key, type=kind, data={})
        words = str(sentence_of(event))
        assert "prod of bob@example.org" in words, kind
        assert "None" not in words or kind.startswith(("entitlement", "access")), kind


def test_texts_of_people_are_short_and_legible() -> None:
    key = create_key(owner=User.objects.create_user("bob@example.org"))
    disable_key(api_key=key, reason="a" * 150 + "\u202e\n" + "b" * 150)
    words = said()
    assert "\u202e" not in words
    assert "⟨U+202E⟩" in words
    assert len(words) < SHOWN_CHARACTERS + 100
    assert "\n" not in words


def test_event_of_an_unknown_type_shows_its_details() -> None:
    key = create_key(owner=User.objects.create_user("bob@example.org"), name="prod")
    event = KeyEvent(
        api_key=key, type="key.sold", data={"price": 7000, "request": 3, "to": "Eve"}
    )
    assert str(sentence_of(event)) == (
        "The service · key.sold: key prod of bob@example.org · price 7,000; to Eve"
    )
