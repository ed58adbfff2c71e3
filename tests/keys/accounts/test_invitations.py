"""Invitations: valid for one address, once and for a week, and private."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from keys.accounts.outgoing import MAX_MAILS_TO_EMAIL
from keys.models import AccountMail, Invitation, MemberEvent, Membership, Role, User
from keys.services import (
    Actor,
    change_role,
    invite,
    remove_member,
    withdraw_invitation,
)
from keys.services.members import MAX_ACCOUNTS, MAX_MEMBERS
from tests.keys.accounts.mailbox import PASSWORD, link_in, the_mail

pytestmark = pytest.mark.django_db

CHOICE = {"new_password1": PASSWORD, "new_password2": PASSWORD}
BOB = "bob@example.org"


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice@example.org", PASSWORD)


@pytest.fixture
def owner(alice: User) -> Client:
    return logged_in(alice)


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def send(owner: Client, email: str = BOB, role: str = "developer"):
    return owner.post(
        "/dashboard/members/invite", {"email": email, "role": role}, follow=True
    )


def page(answer) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())


def test_user_logs_in_and_joins(owner: Client, alice: User) -> None:
    bob = User.objects.create_user(BOB, PASSWORD)
    assert f"An invitation was sent to {BOB}." in page(send(owner, " Bob@Example.org "))
    assert mail.outbox[0].to == [BOB]
    assert "alice@example.org" in the_mail()
    link = link_in(the_mail())
    browser = Client()
    shown = page(browser.get(link))
    assert "Log in to join" in shown
    login = re.findall(r'href="(/account/login\?next=[^"]*)"', shown)[0]
    entered = browser.post(login, {"username": BOB, "password": PASSWORD, "next": link})
    assert entered["Location"] == link
    assert "with the role developer" in page(browser.get(link))
    joined = browser.post(link, follow=True)
    assert "You have joined the account alice@example.org as developer." in page(joined)
    assert joined.context["request"].acting.account == alice
    membership = Membership.objects.get()
    assert (membership.account, membership.member) == (alice, bob)
    assert membership.role == Role.DEVELOPER
    assert mail.outbox[1].to == ["alice@example.org"]
    assert BOB in the_mail()


def test_new_person_chooses_a_password_and_joins(owner: Client, alice: User) -> None:
    send(owner, role="viewer")
    link = link_in(the_mail())
    browser = Client()
    assert "Choose a password" in page(browser.get(link))
    weak = browser.post(link, {"new_password1": "short", "new_password2": "short"})
    assert 'class="errorlist"' in page(weak)
    assert not User.objects.filter(email=BOB).exists()
    joined = browser.post(link, CHOICE, follow=True)
    assert "as viewer" in page(joined)
    bob = User.objects.get(email=BOB)
    assert bob.check_password(PASSWORD)
    assert not (bob.is_staff or bob.is_superuser)
    assert Membership.objects.get(account=alice, member=bob).role == Role.VIEWER


def test_link_is_used_up_by_joining_and_not_by_looking(owner: Client) -> None:
    bob = User.objects.create_user(BOB, PASSWORD)
    send(owner)
    link = link_in(the_mail())
    for _ in range(3):
        assert Client().get(link).status_code == 200
    browser = logged_in(bob)
    assert browser.post(link).status_code == 302
    for visitor in (browser, Client()):
        assert visitor.get(link).status_code == 410
        assert visitor.post(link, CHOICE).status_code == 410
    Membership.objects.all().delete()
    assert browser.post(link).status_code == 410
    assert not Membership.objects.exists()


def test_link_is_only_for_the_invited_address(owner: Client) -> None:
    eve = User.objects.create_user("eve@example.org", PASSWORD)
    send(owner)
    link = link_in(the_mail())
    for user in (eve, User.objects.get(email="alice@example.org")):
        browser = logged_in(user)
        assert f"only for {BOB}" in page(browser.get(link))
        assert f"only for {BOB}" in page(browser.post(link, CHOICE))
    assert not Membership.objects.exists()
    assert not User.objects.filter(email=BOB).exists()
    assert Invitation.objects.exists()


def test_visitor_without_a_login_can_not_join_as_an_existing_user(
    owner: Client,
) -> None:
    bob = User.objects.create_user(BOB, "another password")
    send(owner)
    answer = Client().post(link_in(the_mail()), CHOICE)
    assert "Log in to join" in page(answer)
    bob.refresh_from_db()
    assert bob.check_password("another password")
    assert not Membership.objects.exists()


def test_deactivated_user_does_not_join(owner: Client) -> None:
    bob = User.objects.create_user(BOB, PASSWORD)
    send(owner)
    browser, link = logged_in(bob), link_in(the_mail())
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert browser.post(link, CHOICE).status_code == 200
    assert not Membership.objects.exists()


def test_link_expires_after_a_week(owner: Client) -> None:
    send(owner)
    link = link_in(the_mail())
    invitation = Invitation.objects.get()
    assert timedelta(days=6, hours=23) < invitation.expires_at - timezone.now()
    assert invitation.expires_at - timezone.now() <= timedelta(days=7)
    Invitation.objects.update(expires_at=timezone.now())
    assert Client().get(link).status_code == 410
    assert Client().post(link, CHOICE).status_code == 410
    assert "expired" in page(owner.get("/dashboard/members"))
    assert not User.objects.filter(email=BOB).exists()


def test_withdrawn_and_replaced_links_are_useless(owner: Client) -> None:
    send(owner)
    first = link_in(the_mail())
    resend = f"/dashboard/members/invitations/{Invitation.objects.get().pk}/resend"
    assert owner.post(resend).status_code == 302
    second = link_in(the_mail())
    assert Client().get(first).status_code == 410
    assert Client().get(second).status_code == 200
    withdraw = f"/dashboard/members/invitations/{Invitation.objects.get().pk}/withdraw"
    assert owner.post(withdraw).status_code == 302
    assert Client().get(second).status_code == 410
    assert owner.post(withdraw).status_code == 404


@pytest.mark.parametrize("token", ["x", "é", "a" * 5000])
def test_unknown_link_is_refused(client: Client, token: str) -> None:
    assert client.get(f"/account/invitations/{token}").status_code == 410


def test_link_is_useless_when_the_account_is_deactivated(
    owner: Client, alice: User
) -> None:
    send(owner)
    alice.is_active = False
    alice.save()
    assert Client().get(link_in(the_mail())).status_code == 410


def test_invitations_of_a_former_owner_are_withdrawn(alice: User) -> None:
    bob = User.objects.create_user(BOB)
    membership = Membership.objects.create(account=alice, member=bob, role=Role.OWNER)
    for end in (
        lambda: change_role(membership=membership, role="viewer", actor=Actor(alice)),
        lambda: remove_member(membership=membership, actor=Actor(alice)),
    ):
        Membership.objects.update(role=Role.OWNER)
        invite(account=alice, email="bob2@example.org", role="owner", actor=Actor(bob))
        invite(account=alice, email="x@example.org", role="viewer", actor=Actor(alice))
        end()
        (left,) = Invitation.objects.all()
        assert left.email == "x@example.org"


def test_owner_learns_nothing_about_an_address(owner: Client) -> None:
    User.objects.create_user("known@example.org", PASSWORD)
    User.objects.create_user("closed@example.org", PASSWORD, is_active=False)
    seen = set()
    expires_at = timezone.now() + timedelta(days=7)
    for email in ("known@example.org", "closed@example.org", "nobody@example.org"):
        Invitation.objects.all().delete()
        form = {"email": email, "role": "viewer"}
        with CaptureQueriesContext(connection) as queries:
            answer = owner.post("/dashboard/members/invite", form)
        reads = len(queries)
        Invitation.objects.update(expires_at=expires_at)  # it is on the page
        members = owner.get("/dashboard/members").content.decode()
        listed = members.partition("<h2>Roles")[0].replace(email, "")
        listed = re.sub(r'value="\w+"|invitations/\d+', "", listed)
        text = re.sub(r"/invitations/\S+", "", the_mail()).replace(email, "")
        seen.add((answer.status_code, reads, listed, text))
    assert len(seen) == 1


def test_no_secret_is_stored(owner: Client) -> None:
    send(owner)
    token = link_in(the_mail()).rpartition("/")[2]
    invitation = Invitation.objects.get()
    stored = {
        field.name: getattr(invitation, field.attname)
        for field in invitation._meta.fields
    }
    assert token not in str(stored)
    assert token not in str(MemberEvent.objects.values())
    assert token not in page(owner.get("/dashboard/members"))


def test_new_person_does_not_sign_up_while_that_is_closed(
    owner: Client, settings
) -> None:
    settings.KEYS_SIGNUP = False
    send(owner)
    link = link_in(the_mail())
    assert "Sign-up is closed" in page(Client().get(link))
    assert "Sign-up is closed" in page(Client().post(link, CHOICE))
    assert not User.objects.filter(email=BOB).exists()
    bob = User.objects.create_user(BOB, PASSWORD)
    assert logged_in(bob).post(link).status_code == 302
    assert Membership.objects.get().member == bob


def test_members_are_not_invited_again(owner: Client, alice: User) -> None:
    bob = User.objects.create_user(BOB)
    Membership.objects.create(account=alice, member=bob, role=Role.VIEWER)
    for email in (BOB, "Alice@example.org"):
        refused = send(owner, email)
        assert refused.status_code == 400
        assert "This person is a member already." in page(refused)
    assert mail.outbox == []


@pytest.mark.parametrize(
    ("email", "role"),
    [
        ("", "viewer"),
        ("nobody", "viewer"),
        (BOB, ""),
        (BOB, "admin"),
        ("a\u202e@example.org", "viewer"),
    ],
)
def test_invalid_forms_send_no_invitation(owner: Client, email: str, role: str) -> None:
    refused = send(owner, email, role)
    assert refused.status_code == 400
    assert 'class="errorlist' in page(refused)
    assert mail.outbox == []
    assert not Invitation.objects.exists()


def test_mails_are_limited(owner: Client) -> None:
    for _ in range(MAX_MAILS_TO_EMAIL):
        assert "was sent" in page(send(owner))
    last = link_in(the_mail())
    assert "Too many emails" in page(send(owner))
    resend = f"/dashboard/members/invitations/{Invitation.objects.get().pk}/resend"
    assert "Too many emails" in page(owner.post(resend, follow=True))
    assert len(mail.outbox) == MAX_MAILS_TO_EMAIL
    assert Client().get(last).status_code == 200  # it was not replaced by an unsent one
    AccountMail.objects.all().delete()
    assert "was sent" in page(send(owner))


def test_invitation_waits_for_the_mail_server(owner: Client, settings) -> None:
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = "tests.keys.accounts.test_signup.NoServer"
    assert "Send the invitation again later" in page(send(owner))
    settings.EMAIL_BACKEND = working
    resend = f"/dashboard/members/invitations/{Invitation.objects.get().pk}/resend"
    assert "was sent" in page(owner.post(resend, follow=True))
    assert Client().get(link_in(the_mail())).status_code == 200


def test_links_do_not_lead_where_a_request_says_it_is(owner: Client) -> None:
    form = {"email": BOB, "role": "viewer"}
    owner.post("/dashboard/members/invite", form, HTTP_HOST="evil.example")
    assert "evil.example" not in the_mail()


def test_members_and_invitations_are_limited(
    owner: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (MAX_MEMBERS, MAX_ACCOUNTS) == (100, 50)
    monkeypatch.setattr("keys.services.members.MAX_MEMBERS", 2)
    for name in ("one", "two"):
        assert "was sent" in page(send(owner, f"{name}@example.org"))
    assert "at most 2 members" in page(send(owner))
    assert "was sent" in page(send(owner, "two@example.org"))
    monkeypatch.setattr("keys.services.members.MAX_ACCOUNTS", 0)
    two = User.objects.create_user("two@example.org")
    refused = logged_in(two).post(link_in(the_mail()))
    assert "You can be a member of at most 0 accounts" in page(refused)
    assert Invitation.objects.count() == 2


def test_pages_run_no_scripts_and_stay_out_of_caches(owner: Client) -> None:
    send(owner)
    link = link_in(the_mail())
    for answer in (Client().get(link), owner.get(link), Client().get(link + "x")):
        assert "script-src" not in answer["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
        assert "no-store" in answer["Cache-Control"]
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(link, CHOICE).status_code == 403


def test_session_changes_its_key_when_a_new_person_joins(owner: Client) -> None:
    send(owner)
    browser = Client()
    browser.get("/account/login")
    session = browser.session
    session["kept"] = 1
    session.save()
    before = browser.cookies["sessionid"].value
    browser.post(link_in(the_mail()), CHOICE)
    assert browser.cookies["sessionid"].value != before


def test_withdrawing_twice_is_an_error(alice: User) -> None:
    invitation = invite(account=alice, email=BOB, role="viewer").invitation
    stale = Invitation.objects.get(pk=invitation.pk)
    withdraw_invitation(invitation=invitation)
    with pytest.raises(Exception, match="already accepted or withdrawn"):
        withdraw_invitation(invitation=stale)
