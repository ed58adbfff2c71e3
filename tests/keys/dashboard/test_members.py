"""Members of an account: their changes, the log, and the account of a page."""

from __future__ import annotations

import csv

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from keys.accounts.acting import SESSION_KEY
from keys.audit_sentences import sentence_of
from keys.models import (
    ApiKey,
    EventType,
    KeyEvent,
    MemberEvent,
    Membership,
    Role,
    User,
)
from keys.selectors import (
    is_held,
    may_trace_somewhere,
    role_in,
    roles_of,
    tracers_of,
)
from keys.services import (
    Actor,
    change_role,
    disable_key,
    enable_key,
    grant_entitlement,
    invite,
    issue_key,
    remove_member,
    update_key,
)
from tests.keys.dashboard.conftest import Customer, join, shown_secret, text

MEMBERS = "/dashboard/members"


def member() -> User:
    return User.objects.get(email="member@example.org")


def test_developer_works_on_the_keys_of_the_account(customer: Customer, alpha) -> None:
    client = join(customer, Role.DEVELOPER)
    form = {"name": "Indexer", "networks": ["alpha"], "account": customer.user.pk}
    made = client.post("/dashboard/keys/new", form)
    key = ApiKey.objects.get(name="Indexer")
    assert made["Location"] == f"/dashboard/keys/{key.pk}"
    assert (key.owner, key.created_by) == (customer.user, member())
    assert shown_secret(client.post(f"/dashboard/keys/{key.pk}/reveal"))
    assert "Indexer" in text(customer.client.get("/dashboard/"))


def test_form_acts_for_the_account_that_it_was_shown_for(
    customer: Customer, stranger: Customer
) -> None:
    client = join(customer, Role.DEVELOPER)
    page = text(client.get("/dashboard/keys/new"))
    assert f'name="account" value="{customer.user.pk}"' in page
    client.post("/dashboard/account", {"account": member().pk})  # in another window
    form = {"name": "Theirs", "account": customer.user.pk}
    client.post("/dashboard/keys/new", form)
    assert ApiKey.objects.get(name="Theirs").owner == customer.user
    for account in (stranger.user.pk, "x", "-1", "9" * 30, "²"):
        form = {"name": "Nobody's", "account": account}
        assert client.post("/dashboard/keys/new", form).status_code == 404
    assert not ApiKey.objects.filter(name="Nobody's").exists()


def test_page_of_a_key_acts_for_its_account(customer: Customer) -> None:
    client = join(customer, Role.DEVELOPER)
    own = issue_key(owner=member(), name="My own").api_key
    assert "My own" not in text(client.get("/dashboard/"))
    assert "My own" in text(client.get(f"/dashboard/keys/{own.pk}"))
    assert "My own" in text(client.get("/dashboard/"))
    assert "First" in text(client.get(customer.path()))
    assert "First" in text(client.get("/dashboard/"))


def test_menu_names_all_accounts_and_switches(customer: Customer) -> None:
    client = join(customer, Role.VIEWER)
    page = text(client.get("/dashboard/"))
    for account in (customer.user, member()):
        assert f'name="account" value="{account.pk}"' in page
    switched = client.post("/dashboard/account", {"account": member().pk}, follow=True)
    assert switched.context["request"].acting.is_own
    assert 'name="account"' not in text(customer.client.get("/dashboard/"))


def test_removed_member_is_told_and_continues_in_their_own_account(
    customer: Customer,
) -> None:
    client = join(customer, Role.OWNER)
    Membership.objects.all().delete()
    page = client.get("/dashboard/")
    assert "You no longer have access to the selected account" in text(page)
    assert page.context["request"].acting.is_own
    assert SESSION_KEY not in client.session
    assert "no longer" not in text(client.get("/dashboard/"))


def test_history_names_the_person_and_their_role(customer: Customer) -> None:
    client = join(customer, Role.DEVELOPER)
    client.post(customer.path("rename"), {"name": "Renamed"}, REMOTE_ADDR="192.0.2.9")
    event = customer.key.events.get(type=EventType.UPDATED)
    assert (event.actor, event.actor_role) == (member(), "developer")
    assert sentence_of(event).before.startswith("member@example.org (developer)")
    seen = text(customer.client.get(customer.path("activity")))
    assert 'member@example.org <span class="badge">developer</span>' in seen
    assert "192.0.2.9" in seen
    assert ">you <small>192.0.2.9" in text(client.get(customer.path("activity")))
    Membership.objects.all().delete()  # the log keeps their former role
    rows = customer.client.get(customer.path("activity.csv")).content.decode()
    assert next(csv.DictReader(rows.splitlines()))["by"] == (
        "member@example.org (developer)"
    )


def test_history_shows_members_the_owner_and_no_addresses(customer: Customer) -> None:
    customer.client.post(
        customer.path("rename"), {"name": "Mine"}, REMOTE_ADDR="192.0.2.7"
    )
    staff = User.objects.create_user("staff@example.org", is_staff=True)
    update_key(api_key=customer.key, name="Ours", actor=Actor(staff, "192.0.2.8"))
    seen = text(join(customer, Role.VIEWER).get(customer.path("activity")))
    assert 'customer@example.org <span class="badge">owner</span>' in seen
    assert "support" in seen
    for hidden in ("staff@example.org", "192.0.2.7", "192.0.2.8"):
        assert hidden not in seen
    manager = join(customer, Role.OWNER, "manager@example.org")
    assert "192.0.2.7" in text(manager.get(customer.path("activity")))


def test_member_enables_what_a_member_has_disabled(customer: Customer) -> None:
    client = join(customer, Role.DEVELOPER)
    client.post(customer.path("disable"))
    customer.key.refresh_from_db()
    assert not is_held(customer.key)
    assert customer.post("enable").status_code == 302
    customer.key.refresh_from_db()
    assert customer.key.is_enabled
    disable_key(api_key=customer.key, reason="abuse")
    client.post(customer.path("enable"))
    customer.key.refresh_from_db()
    assert not customer.key.is_enabled
    enable_key(api_key=customer.key)


def test_staff_take_over_what_a_member_has_disabled(customer: Customer) -> None:
    join(customer, Role.DEVELOPER).post(customer.path("disable"))
    disable_key(api_key=customer.key, reason="abuse")
    customer.key.refresh_from_db()
    assert is_held(customer.key)


def test_explorer_opens_with_the_entitlements_of_an_account(
    customer: Customer, alpha
) -> None:
    join(customer, Role.VIEWER)
    user = member()
    assert not may_trace_somewhere(user)
    grant_entitlement(api_key=customer.key, network=alpha, tracers=["callTracer"])
    assert may_trace_somewhere(user)
    assert tracers_of(user, alpha) == {"callTracer"}
    Membership.objects.all().delete()
    assert not may_trace_somewhere(user)


def test_owner_changes_roles_and_removes_members(customer: Customer) -> None:
    client = join(customer, Role.VIEWER)
    membership = Membership.objects.get()
    place = f"{MEMBERS}/{membership.pk}"
    changed = customer.client.post(f"{place}/role", {"role": "owner"}, follow=True)
    assert "member@example.org has the role owner." in text(changed)
    assert role_in(member(), customer.user) == Role.OWNER
    wrong = customer.client.post(f"{place}/role", {"role": "king"}, follow=True)
    assert "Choose a role." in text(wrong)
    assert "Remove member@example.org" in text(customer.client.get(f"{place}/remove"))
    customer.client.post(f"{place}/remove")
    assert role_in(member(), customer.user) is None
    assert client.get(customer.path()).status_code == 404
    assert customer.client.post(f"{place}/remove").status_code == 404
    types = MemberEvent.objects.order_by("id").values_list("type", flat=True)
    assert list(types) == ["member.role_changed", "member.removed"]
    page = text(customer.client.get(MEMBERS))
    assert "viewer → owner" in page
    assert "removed" in page


def test_members_of_another_account_are_not_found(
    customer: Customer, stranger: Customer
) -> None:
    place = f"{MEMBERS}/{customer.member.pk}"
    sent = f"{MEMBERS}/invitations/{customer.invitation.pk}"
    for path in (
        f"{place}/role",
        f"{place}/remove",
        f"{sent}/resend",
        f"{sent}/withdraw",
    ):
        assert stranger.client.post(path, {"role": "owner"}).status_code == 404
    assert Membership.objects.get().role == Role.DEVELOPER


def test_member_leaves(customer: Customer) -> None:
    client = join(customer, Role.OWNER)
    asked = client.get(f"{MEMBERS}/leave", {"account": customer.user.pk})
    assert "You lose access to the account customer@example.org" in text(asked)
    form = {"account": customer.user.pk}
    left = client.post(f"{MEMBERS}/leave", form, follow=True)
    assert "You have left the account customer@example.org." in text(left)
    assert left.context["request"].acting.is_own
    assert [one.account for one in roles_of(member())] == [member()]
    assert MemberEvent.objects.get().type == "member.left"


def test_last_owner_can_not_leave(customer: Customer) -> None:
    join(customer, Role.OWNER)
    for method in (customer.client.get, customer.client.post):
        refused = method(f"{MEMBERS}/leave", follow=True)
        assert refused.redirect_chain[-1][0] == MEMBERS
        assert "leave your own account" in text(refused)
    assert role_in(customer.user, customer.user) == Role.OWNER
    assert not MemberEvent.objects.exists()
    with pytest.raises(IntegrityError, match="member_of_another"), transaction.atomic():
        Membership.objects.create(
            account=customer.user, member=customer.user, role=Role.VIEWER
        )


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER])
def test_services_refuse_other_roles(customer: Customer, role: Role) -> None:
    join(customer, role)
    membership, actor = Membership.objects.get(), Actor(member())
    for change in (
        lambda: invite(
            account=customer.user, email="x@example.org", role="owner", actor=actor
        ),
        lambda: change_role(membership=membership, role="owner", actor=actor),
        lambda: remove_member(membership=customer.member, actor=actor),
    ):
        with pytest.raises(ValidationError, match="Only owners"):
            change()
    assert not MemberEvent.objects.exists()


def test_events_of_members_are_neither_changed_nor_deleted(customer: Customer) -> None:
    assert customer.invitation
    event = MemberEvent.objects.get()
    with pytest.raises(TypeError):
        event.save()
    with pytest.raises(TypeError):
        event.delete()
    for change in (
        MemberEvent.objects.all().delete,
        lambda: MemberEvent.objects.update(role="owner"),
    ):
        with (
            pytest.raises(IntegrityError, match="neither changed nor deleted"),
            transaction.atomic(),
        ):
            change()


def test_events_written_without_a_role_have_none(customer: Customer) -> None:
    with connection.cursor() as cursor:  # as a process of an earlier version does
        cursor.execute(
            "INSERT INTO keys_keyevent (at, api_key_id, type, data)"
            " VALUES (now(), %s, 'key.enabled', '{}')",
            [customer.key.pk],
        )
    assert KeyEvent.objects.latest("id").actor_role == ""


def test_list_takes_as_many_queries_for_many_members_as_for_few(
    customer: Customer,
) -> None:
    counts = []
    for round in range(2):
        join(customer, Role.VIEWER, f"first{round}@example.org")
        invite(account=customer.user, email=f"{round}@example.org", role="viewer")
        with CaptureQueriesContext(connection) as queries:
            assert customer.client.get(MEMBERS).status_code == 200
        counts.append(len(queries))
        for number in range(4):
            email = f"{round}-{number}@example.org"
            join(customer, Role.VIEWER, email)
            invite(account=customer.user, email=f"i{email}", role="viewer")
    assert counts[0] == counts[1]


def test_members_page_says_who_is_who(customer: Customer) -> None:
    client = join(customer, Role.VIEWER)
    page = text(client.get(MEMBERS))
    assert 'member@example.org <span class="quiet">you</span>' in page
    assert "Leave…" in page
    for words in ("Invite a member</a>", "Remove…", "Change role</button>"):
        assert words not in page
    owners = text(customer.client.get(MEMBERS))
    for words in ("Invite a member</a>", "Remove…", "Change role</button>"):
        assert words in owners
    assert Client().get(MEMBERS).status_code == 302
