"""Log-in, forgotten and new passwords, and the sessions that end with a new one."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.hashers import make_password
from django.core import mail
from django.test import Client

from keys.login import MAX_FAILURES_OF_PAIR
from keys.models import User
from keys.services import get_or_create_customer
from keys.signals import password_changed
from tests.keys.accounts.mailbox import PASSWORD, link_in, the_mail

pytestmark = pytest.mark.django_db

OTHER = "another horse staple"
CHOICE = {"new_password1": OTHER, "new_password2": OTHER}


@pytest.fixture
def user() -> User:
    return User.objects.create_user("known@example.org", PASSWORD)


def log_in(client: Client, password: str = PASSWORD, following: str = ""):
    form = {"username": "known@example.org", "password": password, "next": following}
    return client.post("/account/login", form)


@pytest.fixture
def heard() -> list[User]:
    """Return the users for whom `password_changed` was sent."""
    users: list[User] = []

    def hear(user: User, **_: object) -> None:
        users.append(user)

    password_changed.connect(hear)
    yield users
    password_changed.disconnect(hear)


def test_log_in_leads_to_the_dashboard_with_another_session(client, user) -> None:
    session = client.session
    session["kept"] = 1
    session.save()
    before = client.cookies["sessionid"].value
    assert log_in(client)["Location"] == "/dashboard/"
    after = client.cookies["sessionid"].value
    assert after != before
    thief = Client()
    thief.cookies["sessionid"] = before
    assert thief.get("/dashboard/").status_code == 302


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/",
        "//evil.example/",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "http:evil.example",
        "/\tevil",
        "https://testserver@evil.example/",
    ],
)
def test_next_leads_to_no_other_site(client, user, path) -> None:
    location = log_in(client, following=path)["Location"]
    assert location == "/dashboard/" or re.fullmatch(r"/(?![/\\]).*", location)
    assert "evil.example" not in location.partition("?")[0]


def test_next_leads_to_our_own_pages(client, user) -> None:
    assert log_in(client, following="/wallet/")["Location"] == "/wallet/"


def test_forgotten_password_is_replaced_and_all_browsers_log_in_anew(
    client, user, heard
) -> None:
    other = Client()
    log_in(other)
    assert other.get("/dashboard/").status_code == 200
    client.post("/account/reset", {"email": "KNOWN@example.org"})
    form = client.get(link_in(the_mail()), follow=True)
    path = form.redirect_chain[-1][0]
    assert client.post(path, CHOICE)["Location"] == "/account/login"
    assert other.get("/dashboard/").status_code == 302
    assert heard == [user]
    assert "was changed" in the_mail()
    assert log_in(client).status_code == 200
    assert log_in(client, OTHER).status_code == 302


def test_reset_link_works_once(client, user) -> None:
    client.post("/account/reset", {"email": user.email})
    link = link_in(the_mail())
    path = client.get(link, follow=True).redirect_chain[-1][0]
    client.post(path, CHOICE)
    again = Client().get(link, follow=True)
    assert "<title>This link has expired" in again.content.decode()
    assert "This link has expired" in client.post(path, CHOICE).content.decode()


def test_reset_does_not_reveal_who_has_an_account(client, user) -> None:
    User.objects.create_user("closed@example.org", PASSWORD, is_active=False)
    answers = set()
    for email in (user.email, "nobody@example.org", "closed@example.org"):
        before = len(mail.outbox)
        answer = client.post("/account/reset", {"email": email})
        answers.add((answer.status_code, answer["Location"]))
        assert len(mail.outbox) == before + 1
    assert len(answers) == 1
    assert "/account/reset/" in the_mail(0)
    for number in (1, 2):
        assert "which has\nno active account" in the_mail(number)
        assert "/account/reset/" not in the_mail(number)


def test_customer_whom_staff_has_made_sets_the_first_password(client, settings) -> None:
    settings.KEYS_SIGNUP = False
    user = get_or_create_customer(email="made@example.org")
    assert not user.has_usable_password()
    client.post("/account/reset", {"email": user.email})
    path = client.get(link_in(the_mail()), follow=True).redirect_chain[-1][0]
    assert client.post(path, CHOICE).status_code == 302
    user.refresh_from_db()
    assert user.check_password(OTHER)


def test_reset_lets_a_user_in_who_has_guessed_too_often(client, user) -> None:
    for _ in range(MAX_FAILURES_OF_PAIR):
        log_in(client, "wrong")
    assert log_in(client).status_code == 200
    client.post("/account/reset", {"email": user.email})
    path = client.get(link_in(the_mail()), follow=True).redirect_chain[-1][0]
    client.post(path, CHOICE)
    assert log_in(client, OTHER).status_code == 302


def test_changed_password_ends_other_sessions_and_keeps_this_one(
    client, user, heard
) -> None:
    other = Client()
    log_in(client)
    log_in(other)
    before = client.cookies["sessionid"].value
    form = {"old_password": PASSWORD, **CHOICE}
    assert client.post("/account/password", form)["Location"] == "/account/"
    assert client.cookies["sessionid"].value != before
    assert "is changed" in client.get("/account/").content.decode()
    assert other.get("/account/").status_code == 302
    assert heard == [user]
    assert mail.outbox[-1].to == [user.email]


@pytest.mark.parametrize("path", ["/account/password", "/admin/password_change/"])
def test_old_password_can_be_guessed_no_oftener_than_at_the_log_in(
    client, user, path: str
) -> None:
    User.objects.update(is_staff=True)
    log_in(client)
    page = client.get(path, follow=True).request["PATH_INFO"]
    for _ in range(MAX_FAILURES_OF_PAIR):
        wrong = {"old_password": "wrong", **CHOICE}
        assert client.post(page, wrong).status_code == 200
    right = {"old_password": PASSWORD, **CHOICE}
    refused = client.post(page, right)
    assert "Too many wrong passwords" in refused.content.decode()
    user.refresh_from_db()
    assert user.check_password(PASSWORD)


def test_new_password_sends_the_signal_wherever_it_is_set(client, user, heard) -> None:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    page = f"/admin/keys/user/{user.pk}/password/"
    form = {"password1": OTHER, "password2": OTHER, "usable_password": "true"}
    assert client.post(page, form).status_code == 302
    assert heard == [user]


def test_unchanged_password_sends_no_signal(client, user, heard, settings) -> None:
    User.objects.create_user("fresh@example.org", PASSWORD)
    user.first_name = "Ada"
    user.save()
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.ScryptPasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    assert user.password == make_password(PASSWORD, user.password.split("$")[1], "md5")
    assert log_in(client).status_code == 302  # hashes the same password anew
    user.refresh_from_db()
    assert user.password.startswith("scrypt$")
    assert heard == []


@pytest.mark.parametrize(
    "path", ["", "login", "signup", "mail", "reset", "password", "signup/x"]
)
def test_pages_stay_out_of_frames_and_caches(client, user, path) -> None:
    if path in ("", "password"):
        client.force_login(user)
    answer = client.get(f"/account/{path}")
    assert answer.status_code in (200, 410)
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert "script-src" not in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("path", ["login", "logout", "signup", "reset", "password"])
def test_forms_of_other_sites_are_refused(user, path) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    assert strict.post(f"/account/{path}", {}).status_code == 403
