"""Events of members as sentences, as the audit log in the admin shows them."""

from __future__ import annotations

import pytest

from keys.audit_sentences import member_sentence
from keys.models import MemberEvent, MemberEventType, Role, User

OF_OWNER = "the account of owner@example.org"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "INVITED",
            f"boss@example.org invited new@example.org to {OF_OWNER} as viewer",
        ),
        (
            "WITHDRAWN",
            f"boss@example.org withdrew the invitation of new@example.org to {OF_OWNER}",
        ),
        ("JOINED", f"new@example.org joined {OF_OWNER} as viewer"),
        (
            "ROLE_CHANGED",
            f"boss@example.org changed the role of new@example.org in {OF_OWNER} "
            "from developer to viewer",
        ),
        ("REMOVED", f"boss@example.org removed new@example.org from {OF_OWNER}"),
        ("LEFT", f"new@example.org left {OF_OWNER}"),
    ],
)
def test_each_event_is_a_sentence(kind: str, words: str) -> None:
    owner, boss = (User(email=f"{name}@example.org") for name in ("owner", "boss"))
    event = MemberEvent(
        account=owner,
        type=MemberEventType[kind],
        actor=boss,
        actor_ip="192.0.2.5",
        email="new@example.org",
        role=Role.VIEWER,
        former_role=Role.DEVELOPER,
    )
    assert member_sentence(event).lower() == f"{words}, from 192.0.2.5"


def test_every_type_has_a_sentence_and_an_event_needs_no_user() -> None:
    for kind in MemberEventType:
        event = MemberEvent(
            account=User(email="owner@example.org"), type=kind, role=Role.OWNER
        )
        assert "owner@example.org" in member_sentence(event)
