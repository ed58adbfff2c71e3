"""The admin: log-in, permissions and pages of staff."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from keys.format import make_key
from keys.login import MAX_FAILURES_FROM_IP, MAX_FAILURES_OF_PAIR, WINDOW
from keys.models import (
    AccessRequest,
    AllowlistEntry,
    ApiKey,
    Entitlement,
    KeyEvent,
    KeyVersion,
    LoginFailure,
    User,
)
from keys.notices.queue import send_waiting
from keys.services import (
    Actor,
    IssuedKey,
    accept_invitation,
    create_key,
    delete_key,
    disable_key,
    get_or_create_customer,
    invite,
    issue_key,
    request_access,
    revoke_version,
    set_allowlist,
    update_key,
)
from keys.states import State, in_state, state_of
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db

API_KEYS = "/admin/keys/apikey/"
REQUESTS = "/admin/keys/accessrequest/"
EVENTS = "/admin/keys/keyevent/"


@pytest.fixture
def issued() -> IssuedKey:
    return issue_key(owner=get_or_create_customer(email="owner@example.org"))


def member(client: Client, group: str) -> Client:
    """Log a member of a group of staff in."""
    user = User.objects.create_user(f"{group[:3]}@example.org", is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    client.force_login(user)
    return client


def act(client: Client, page: str, row: Any, action: str, **answers: Any) -> str:
    """Run an action on a row; with `answers`, submit its confirmation page."""
    if answers:
        answers["confirmed"] = "on"
    chosen = {"action": action, "_selected_action": [row.pk], **answers}
    return client.post(page, chosen, follow=True).content.decode()


ACTIONS: dict[str, dict[str, Any]] = {
    "disable": {"reason": "abuse"},
    "revoke": {"reason": "leaked"},
    "roll": {"overlap": "3600"},
    "delete_keys": {"confirmed": "on"},
}


@pytest.mark.parametrize(
    ("group", "allowed"),
    [
        ("support", {"disable"}),
        ("key officer", set(ACTIONS)),
        ("auditor", set()),
    ],
)
def test_groups_do_what_is_theirs_also_when_they_post_by_hand(
    client: Client, issued: IssuedKey, group: str, allowed: set[str]
) -> None:
    member(client, group)
    offered = client.get(API_KEYS).content.decode()
    for action, answers in ACTIONS.items():
        before = KeyEvent.objects.count()
        assert (f'value="{action}"' in offered) == (action in allowed)
        act(client, API_KEYS, issued.api_key, action, **answers)
        assert (KeyEvent.objects.count() > before) == (action in allowed), action


@pytest.mark.parametrize("group", ["support", "auditor"])
def test_staff_who_may_only_view_change_nothing_on_the_keys_page(
    client: Client, issued: IssuedKey, group: str
) -> None:
    member(client, group)
    page = f"{API_KEYS}{issued.api_key.pk}/change/"
    assert issued.version.hint in client.get(page).content.decode()
    assert client.post(page, {"name": "taken"}).status_code == 403
    assert client.get(f"{API_KEYS}add/").status_code == 403
    assert client.get(EVENTS).status_code == 200
    assert ApiKey.objects.get().name == ""


def test_no_group_can_change_users_or_events(client: Client, issued: IssuedKey) -> None:
    member(client, "key officer")
    event = KeyEvent.objects.latest("id")
    for page in (
        f"/admin/keys/user/{issued.api_key.owner_id}/change/",
        f"{EVENTS}{event.pk}/change/",
    ):
        assert client.get(page).status_code == 200
        assert client.post(page, {"is_superuser": "on"}).status_code == 403
    for page in (f"{EVENTS}add/", f"{EVENTS}{event.pk}/delete/"):
        assert client.post(page).status_code == 403


def test_officer_issues_a_key_that_the_customer_reveals(client: Client) -> None:
    owner = get_or_create_customer(email="owner@example.org")
    member(client, "key officer")
    form = {"owner": owner.pk, "name": "dapp", "is_enabled": "on"}
    for prefix in ("entitlements", "versions", "allowlist"):
        form |= {f"{prefix}-TOTAL_FORMS": 0, f"{prefix}-INITIAL_FORMS": 0}
    answer = client.post(f"{API_KEYS}add/", form)
    assert answer.status_code == 302
    api_key = ApiKey.objects.get()
    assert not api_key.versions.exists()
    event = KeyEvent.objects.get()
    assert event.actor is not None
    assert (event.type, event.actor.email) == ("key.created", "key@example.org")
    assert event.actor_ip == "127.0.0.1"


def test_action_asks_first_and_the_roll_shows_the_secret_once(
    client: Client, issued: IssuedKey
) -> None:
    member(client, "key officer")
    assert 'name="overlap"' in act(client, API_KEYS, issued.api_key, "roll")
    assert KeyVersion.objects.count() == 1
    page = act(client, API_KEYS, issued.api_key, "roll", overlap="3600")
    found = re.search(r'id="secret">([^<]+)<', page)
    assert found is not None
    assert KeyVersion.objects.live().count() == 2
    for path in (API_KEYS, f"{API_KEYS}{issued.api_key.pk}/change/", EVENTS):
        assert found[1][7:-4] not in client.get(path).content.decode()


def test_tracing_is_granted_to_many_keys_at_once(client: Client) -> None:
    alpha = make_network("alpha")
    owner = get_or_create_customer(email="owner@example.org")
    keys = [create_key(owner=owner), create_key(owner=owner)]
    member(client, "key officer")
    terms = {"network": alpha.pk, "tracers": ["callTracer"], "confirmed": "on"}
    chosen = {"action": "grant", "_selected_action": [key.pk for key in keys]}
    client.post(API_KEYS, {**chosen, **terms})
    granted = Entitlement.objects.values_list("network__slug", "tracers")
    assert list(granted) == [("alpha", ["callTracer"])] * 2


def test_allowlist_is_written_on_the_keys_page(
    client: Client, issued: IssuedKey
) -> None:
    member(client, "key officer")
    page = f"{API_KEYS}{issued.api_key.pk}/change/"
    form: dict[str, Any] = {"is_enabled": "on"}
    for prefix in ("entitlements", "versions"):
        form |= {f"{prefix}-TOTAL_FORMS": 0, f"{prefix}-INITIAL_FORMS": 0}
    rows = {"allowlist-0-kind": "origin", "allowlist-0-value": "HTTPS://A.example"}
    added = {"allowlist-TOTAL_FORMS": 1, "allowlist-INITIAL_FORMS": 0, **rows}
    assert client.post(page, {**form, **added}).status_code == 302
    entry = AllowlistEntry.objects.get()
    assert (entry.kind, entry.value) == ("origin", "https://a.example")
    added["allowlist-0-value"] = "*"
    assert "is not an origin" in client.post(page, {**form, **added}).content.decode()
    kept = {"allowlist-0-id": entry.pk, "allowlist-0-api_key": issued.api_key.pk}
    gone = {**added, **kept, "allowlist-INITIAL_FORMS": 1, "allowlist-0-DELETE": "on"}
    gone["allowlist-0-value"] = entry.value
    assert client.post(page, {**form, **gone}).status_code == 302
    assert not AllowlistEntry.objects.exists()
    assert KeyEvent.objects.filter(type="allowlist.changed").count() == 2


def test_pasted_key_is_found_and_stays_in_no_address_and_no_log(
    client: Client, issued: IssuedKey, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client.force_login(User.objects.create_superuser("staff@example.org"))
    issue_key(owner=get_or_create_customer(email="other@example.org"))
    answer = client.get(API_KEYS, {"q": f" {issued.secret} "})
    assert answer.status_code == 302
    assert issued.secret[7:-4] not in answer["Location"]
    shown = client.get(answer["Location"])
    assert list(shown.context["cl"].result_list) == [issued.api_key]
    assert issued.secret[7:-4] not in shown.content.decode() + caplog.text
    nobodys = client.get(API_KEYS, {"q": make_key()}, follow=True)
    assert "No API key has this secret" in nobodys.content.decode()


def test_secrets_of_an_expired_key_are_revoked_for_good(
    client: Client, issued: IssuedKey
) -> None:
    """The secrets stay revoked if the key later gets another expiry."""
    client.force_login(User.objects.create_superuser("staff@example.org"))
    ApiKey.objects.update(expires_at=timezone.now())
    assert issued.version.hint in act(client, API_KEYS, issued.api_key, "revoke")
    act(client, API_KEYS, issued.api_key, "revoke", reason="leaked")
    update_key(api_key=issued.api_key, expires_at=None)
    assert not KeyVersion.objects.live().exists()


def every_state() -> dict[State, ApiKey]:
    """Make a key in each state."""
    owner = get_or_create_customer(email="owner@example.org")
    keys = {state: issue_key(owner=owner) for state in State}
    delete_key(api_key=keys[State.DELETED].api_key)
    disable_key(api_key=keys[State.DISABLED].api_key)
    keys[State.UNREVEALED].version.delete()
    revoke_version(version=keys[State.REVOKED].version, reason="x")
    soon = timezone.now() + timedelta(days=3)
    expiring = keys[State.EXPIRING].api_key
    ApiKey.objects.filter(pk=expiring.pk).update(expires_at=soon)
    expired = keys[State.EXPIRED].version
    KeyVersion.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    return {
        state: ApiKey.objects.get(pk=issued.api_key.pk)
        for state, issued in keys.items()
    }


def test_badge_and_filter_agree_on_every_state(client: Client) -> None:
    keys = every_state()
    client.force_login(User.objects.create_superuser("staff@example.org"))
    for state, api_key in keys.items():
        assert state_of(api_key) == state
        assert list(in_state(ApiKey.objects.all(), state)) == [api_key], state
        page = client.get(API_KEYS, {"state": state.value})
        assert list(page.context["cl"].result_list) == [api_key]
    shown = client.get(API_KEYS).context["cl"].result_list
    assert set(shown) == set(keys.values()) - {keys[State.DELETED]}
    deleted = f"{API_KEYS}{keys[State.DELETED].pk}/change/"
    assert client.post(deleted, {"name": "back"}).status_code == 403


def test_list_takes_as_many_queries_for_many_keys_as_for_few(client: Client) -> None:
    alpha = make_network("alpha")
    client.force_login(User.objects.create_superuser("staff@example.org"))

    def queries() -> int:
        with CaptureQueriesContext(connection) as context:
            assert client.get(API_KEYS).status_code == 200
        return len(context)

    counts = []
    for number in range(2):
        for serial in range(1 + 9 * number):
            owner = get_or_create_customer(email=f"{serial}@example.org")
            issue_key(owner=owner, networks=[alpha], may_trace=True)
        counts.append(queries())
    assert counts[0] == counts[1]


def test_page_undoes_nothing_that_has_changed_while_it_was_open(
    client: Client, issued: IssuedKey
) -> None:
    member(client, "key officer")
    api_key, alpha, beta = issued.api_key, make_network("alpha"), make_network("beta")
    page = f"{API_KEYS}{api_key.pk}/change/"
    assert 'name="initial-is_enabled" value="True"' in client.get(page).content.decode()
    shown = {"is_enabled": "on", "initial-is_enabled": "True", "initial-name": ""}
    for prefix in ("entitlements", "versions", "allowlist"):
        shown |= {f"{prefix}-TOTAL_FORMS": "0", f"{prefix}-INITIAL_FORMS": "0"}
    disable_key(api_key=api_key, reason="abuse")
    update_key(api_key=api_key, networks=[alpha], staff_note="see ticket 7")
    set_allowlist(api_key=api_key, kind="ip", values=["192.0.2.7"])
    assert client.post(page, {**shown, "name": "renamed"}).status_code == 302
    api_key.refresh_from_db()
    assert (api_key.name, api_key.is_enabled) == ("renamed", False)
    assert list(api_key.networks.all()) == [alpha]
    assert api_key.staff_note == "see ticket 7"
    row = {"allowlist-TOTAL_FORMS": "1", "allowlist-0-kind": "method"}
    row |= {"allowlist-0-value": "eth_chainId", "name": "renamed", "networks": beta.pk}
    row |= {"initial-name": "renamed", "initial-networks": alpha.pk}
    assert client.post(page, {**shown, **row}).status_code == 302
    assert list(api_key.networks.all()) == [beta]
    entries = AllowlistEntry.objects.values_list("kind", "value")
    assert set(entries) == {("ip", "192.0.2.7/32"), ("method", "eth_chainId")}


def test_expiry_that_has_passed_is_refused_on_the_page(
    client: Client, issued: IssuedKey
) -> None:
    member(client, "key officer")
    form: dict[str, Any] = {"is_enabled": "on", "expires_at_0": "2020-01-01"}
    for prefix in ("entitlements", "versions", "allowlist"):
        form |= {f"{prefix}-TOTAL_FORMS": 0, f"{prefix}-INITIAL_FORMS": 0}
    form["expires_at_1"] = "00:00:00"
    page = f"{API_KEYS}{issued.api_key.pk}/change/"
    assert "in the past" in client.post(page, form).content.decode()
    assert ApiKey.objects.get().expires_at is None


def test_request_is_decided_in_the_queue(client: Client, issued: IssuedKey) -> None:
    alpha = make_network("alpha")
    wish: dict[str, Any] = {"api_key": issued.api_key, "network": alpha}
    first = request_access(**wish, reason="to debug <mine>")
    member(client, "key officer")
    assert "to debug &lt;mine&gt;" in client.get(REQUESTS).content.decode()
    assert 'name="answer"' in act(client, REQUESTS, first, "decline")
    act(client, REQUESTS, first, "decline", answer="Not on this plan.")
    second = request_access(**wish, reason="now on another")
    act(
        client,
        REQUESTS,
        second,
        "approve",
        expires_at_0="2999-01-01",
        expires_at_1="00:00",
    )
    statuses = AccessRequest.objects.order_by("id").values_list("status", flat=True)
    assert list(statuses) == ["declined", "approved"]
    granted = Entitlement.objects.get().expires_at
    assert granted is not None
    assert granted.year == 2999


def test_support_decides_on_no_request(client: Client, issued: IssuedKey) -> None:
    asked = request_access(
        api_key=issued.api_key, network=make_network("alpha"), reason="x"
    )
    member(client, "support")
    act(client, REQUESTS, asked, "approve", answer="here you are")
    assert AccessRequest.objects.get().status == "pending"
    send_waiting()
    assert not mail.outbox


def log_in(client: Client, email: str, password: str, ip: str = "192.0.2.1") -> bool:
    """Try to log in to the admin; return whether that worked."""
    answer = client.post(
        "/admin/login/", {"username": email, "password": password}, REMOTE_ADDR=ip
    )
    return answer.status_code == 302


def test_guessing_a_password_is_locked_out_from_its_place_for_a_while(
    client: Client,
) -> None:
    User.objects.create_superuser("staff@example.org", "open sesame 1")
    for _ in range(MAX_FAILURES_OF_PAIR):
        assert not log_in(client, "Staff@example.org", "wrong")
    assert not log_in(client, "staff@example.org", "open sesame 1")
    assert log_in(Client(), "staff@example.org", "open sesame 1", ip="192.0.2.2")
    LoginFailure.objects.update(at=timezone.now() - WINDOW)
    assert log_in(client, "staff@example.org", "open sesame 1")


def test_right_password_makes_failures_forgotten(client: Client) -> None:
    User.objects.create_superuser("staff@example.org", "open sesame 1")
    for _ in range(3):
        for _ in range(MAX_FAILURES_OF_PAIR - 1):
            assert not log_in(client, "staff@example.org", "wrong")
        assert log_in(Client(), "staff@example.org", "open sesame 1")
    assert not LoginFailure.objects.exists()


def test_trying_many_addresses_from_one_place_is_locked_out(client: Client) -> None:
    User.objects.create_superuser("staff@example.org", "open sesame 1")
    for number in range(MAX_FAILURES_FROM_IP):
        assert not log_in(client, f"nobody{number}@example.org", "wrong")
    assert not log_in(client, "staff@example.org", "open sesame 1")
    assert LoginFailure.objects.count() == MAX_FAILURES_FROM_IP


def test_network_of_a_customer_is_one_place(client: Client) -> None:
    """All addresses of an IPv6 /64 network count as one client."""
    User.objects.create_superuser("staff@example.org", "open sesame 1")
    for number in range(MAX_FAILURES_OF_PAIR):
        assert not log_in(client, "staff@example.org", "wrong", f"2001:db8::{number}")
    assert not log_in(client, "staff@example.org", "open sesame 1", "2001:db8::ffff")
    assert log_in(client, "staff@example.org", "open sesame 1", "2001:db8:0:1::1")


def test_groups_stay_as_staff_have_changed_them() -> None:
    from keys.groups import make_groups

    support = Group.objects.get(name="support")
    support.permissions.clear()
    make_groups()
    assert not support.permissions.exists()


def test_staff_see_who_may_use_an_account(client: Client) -> None:
    account, bob = (
        User.objects.create_user(f"{name}@example.org") for name in ("account", "bob")
    )
    issued = invite(account=account, email=bob.email, role="developer")
    accept_invitation(token=issued.token, user=bob, actor=Actor(bob, "192.0.2.5"))
    sent = invite(account=account, email="new@example.org", role="viewer")
    member(client, "auditor")
    users = "/admin/keys/user/"
    page = client.get(f"{users}{account.pk}/change/").content.decode()
    assert f'{users}{bob.pk}/change/">bob@example.org</a> (developer)' in page
    page = client.get(f"{users}{bob.pk}/change/").content.decode()
    assert f'{users}{account.pk}/change/">account@example.org</a> (developer)' in page
    for model, shown in (
        ("membership", "bob@example.org"),
        ("invitation", "new@example.org"),
        ("memberevent", "192.0.2.5"),
    ):
        place = f"/admin/keys/{model}/"
        for searched, is_found in (("Account@example.org", True), ("x", False)):
            page = client.get(place, {"q": searched}).content.decode()
            assert (shown in page.partition('id="result_list"')[2]) == is_found
        assert client.get(f"{place}add/").status_code == 403
    page = client.get(f"/admin/keys/invitation/{sent.invitation.pk}/change/")
    assert sent.invitation.digest not in page.content.decode()
    assert client.get("/admin/keys/invitation/", {"q": "new@example.org"}).content


def test_log_names_the_role_of_a_member(client: Client, issued: IssuedKey) -> None:
    bob = User.objects.create_user("bob@example.org")
    disable_key(api_key=issued.api_key, actor=Actor(bob, role="developer"))
    client.force_login(User.objects.create_superuser("staff@example.org"))
    for page in (EVENTS, f"{API_KEYS}{issued.api_key.pk}/change/"):
        assert "bob@example.org (developer)" in client.get(page).content.decode()
