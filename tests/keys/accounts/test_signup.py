"""Sign-up: the address is confirmed first, then the account is created."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from django.utils import timezone

from keys.accounts.outgoing import (
    LIFETIME,
    MAX_MAILS_FROM_IP,
    MAX_MAILS_TO_EMAIL,
    WINDOW,
)
from keys.models import AccountMail, User
from tests.keys.accounts.mailbox import PASSWORD, link_in, the_mail

pytestmark = pytest.mark.django_db

CHOICE = {"new_password1": PASSWORD, "new_password2": PASSWORD}


def ask(client: Client, email: str = "new@example.org", **extra: str):
    return client.post("/account/signup", {"email": email}, **extra)


def test_link_of_the_email_creates_the_account_and_logs_in(client: Client) -> None:
    assert ask(client, " New@Example.org ").status_code == 302
    assert mail.outbox[0].to == ["new@example.org"]
    assert not User.objects.exists()
    link = link_in(the_mail())
    assert "new@example.org" in client.get(link).content.decode()
    answer = client.post(link, CHOICE)
    assert answer["Location"] == "/dashboard/"
    user = User.objects.get()
    assert (user.email, user.is_staff, user.is_superuser) == (
        "new@example.org",
        False,
        False,
    )
    assert client.get("/dashboard/").status_code == 200
    assert user.check_password(PASSWORD)


def test_link_works_once_and_looking_at_it_does_not_use_it_up(client: Client) -> None:
    ask(client)
    link = link_in(the_mail())
    for _ in range(3):
        assert client.get(link).status_code == 200
    assert client.post(link, CHOICE).status_code == 302
    for other in (client, Client()):
        assert other.get(link).status_code == 410
        assert other.post(link, CHOICE).status_code == 410
    assert User.objects.count() == 1


def test_link_stays_used_when_the_account_gets_another_address(client: Client) -> None:
    ask(client)
    link = link_in(the_mail())
    client.post(link, CHOICE)
    User.objects.update(email="moved@example.org")
    assert client.post(link, CHOICE).status_code == 410


def test_second_link_is_over_when_the_first_has_made_the_account(
    client: Client,
) -> None:
    ask(client)
    ask(client)
    first, second = link_in(the_mail(0)), link_in(the_mail(1))
    assert first != second
    client.post(first, CHOICE)
    assert Client().get(second).status_code == 410


def test_link_is_over_after_a_day(client: Client, monkeypatch) -> None:
    ask(client)
    link = link_in(the_mail())
    monkeypatch.setattr("keys.accounts.links.LIFETIME", timedelta(seconds=-1))
    assert client.get(link).status_code == 410
    monkeypatch.setattr("keys.accounts.links.LIFETIME", LIFETIME)
    assert client.get(link).status_code == 200


@pytest.mark.parametrize("change", ["", "x", "MQ", "MTox:1abc:def"])
def test_forged_link_is_refused(client: Client, change: str) -> None:
    ask(client)
    link = link_in(the_mail())
    forged = f"/account/signup/{change}" if change else link[:-1]
    assert client.get(forged).status_code == 410
    assert client.post(forged, CHOICE).status_code == 410
    assert not User.objects.exists()


def test_known_and_unknown_addresses_are_answered_alike(client: Client) -> None:
    User.objects.create_user("known@example.org", PASSWORD)
    User.objects.create_user("closed@example.org", PASSWORD, is_active=False)
    answers = set()
    for email in ("new@example.org", "known@example.org", "closed@example.org"):
        before = len(mail.outbox)
        answer = ask(client, email)
        assert len(mail.outbox) == before + 1
        shown = client.get(answer["Location"])
        answers.add((answer.status_code, answer["Location"], shown.content))
    assert len(answers) == 1
    assert "/account/signup/" in the_mail(0)
    for number in (1, 2):
        assert "which already has an" in the_mail(number)
        assert "/account/signup/" not in the_mail(number)


def test_answer_does_not_wait_longer_for_one_of_the_two(
    client: Client, django_assert_max_num_queries
) -> None:
    """The email takes most of the time. Both cases send one, with equally many queries."""
    User.objects.create_user("known@example.org", PASSWORD)
    counts = []
    for email in ("new@example.org", "known@example.org"):
        with django_assert_max_num_queries(20) as queries:
            ask(client, email)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_mails_to_one_address_are_few_from_any_client(client: Client) -> None:
    User.objects.create_user("known@example.org", PASSWORD)
    for email in ("new@example.org", "known@example.org"):
        for number in range(MAX_MAILS_TO_EMAIL + 2):
            answer = ask(client, email, REMOTE_ADDR=f"192.0.2.{number}")
            over = number >= MAX_MAILS_TO_EMAIL
            assert answer.status_code == (429 if over else 302)
    assert len(mail.outbox) == 2 * MAX_MAILS_TO_EMAIL
    AccountMail.objects.update(at=timezone.now() - WINDOW)
    assert ask(client).status_code == 302


def test_mails_from_one_place_are_few_whomever_they_go_to(client: Client) -> None:
    for number in range(MAX_MAILS_FROM_IP):
        ask(client, f"{number}@example.org", REMOTE_ADDR=f"2001:db8::{number}")
    refused = ask(client, "more@example.org", REMOTE_ADDR="2001:db8::ffff")
    assert refused.status_code == 429
    assert "Try again in an hour" in refused.content.decode()
    reset = {"email": "more@example.org"}
    assert client.post("/account/reset", reset, REMOTE_ADDR="2001:db8::1")
    elsewhere = ask(client, "more@example.org", REMOTE_ADDR="2001:db8:0:1::1")
    assert elsewhere.status_code == 302
    assert len(mail.outbox) == MAX_MAILS_FROM_IP + 1


def test_what_is_counted_is_forgotten_after_a_day(client: Client) -> None:
    ask(client)
    AccountMail.objects.update(at=timezone.now() - LIFETIME - timedelta(seconds=1))
    ask(client, "other@example.org")
    assert AccountMail.objects.count() == 1


@pytest.mark.parametrize(
    "email",
    [
        "",
        "nobody",
        "a@b",
        "x@example.org\nBcc: all@example.org",
        "x@example.org\r\nBcc: all@example.org",
        "x@example.org, y@example.org",
        f"{'x' * 250}@example.org",
    ],
)
def test_what_is_no_address_gets_no_mail(client: Client, email: str) -> None:
    answer = ask(client, email)
    assert answer.status_code == 200
    assert 'class="errorlist"' in answer.content.decode()
    assert mail.outbox == []


def test_weak_password_makes_no_account(client: Client) -> None:
    ask(client)
    link = link_in(the_mail())
    for weak in ("short", "1234567890", "new@example.org", "password"):
        answer = client.post(link, {"new_password1": weak, "new_password2": weak})
        assert 'class="errorlist"' in answer.content.decode()
    different = {**CHOICE, "new_password2": PASSWORD + "x"}
    assert client.post(link, different).status_code == 200
    assert not User.objects.exists()


def test_more_fields_than_are_asked_for_make_no_user_staff(client: Client) -> None:
    more = {"is_staff": "on", "is_superuser": "on", "email": "boss@example.org"}
    client.post("/account/signup", {"email": "new@example.org", "is_staff": "on"})
    client.post(link_in(the_mail()), {**CHOICE, **more})
    user = User.objects.get()
    assert (user.email, user.is_staff) == ("new@example.org", False)
    assert not user.is_superuser


def test_links_do_not_lead_where_a_request_says_it_is(client: Client, settings) -> None:
    ask(client, HTTP_HOST="evil.example", HTTP_X_FORWARDED_HOST="evil.example")
    assert "evil.example" not in the_mail()
    settings.PUBLIC_URL = "https://rpc.example.org"
    ask(client, HTTP_HOST="evil.example")
    assert "\nhttps://rpc.example.org/account/signup/" in the_mail()


def test_sign_up_can_be_closed(client: Client, settings) -> None:
    ask(client)
    link = link_in(the_mail())
    settings.KEYS_SIGNUP = False
    assert 'href="/account/signup"' not in client.get("/account/login").content.decode()
    for path, data in (("/account/signup", {"email": "x@example.org"}), (link, CHOICE)):
        assert client.get(path).status_code == 403
        assert client.post(path, data).status_code == 403
    assert len(mail.outbox) == 1
    assert not User.objects.exists()


class NoServer(EmailBackend):
    def send_messages(self, messages: object) -> int:
        raise ConnectionRefusedError("no mail server")


@pytest.mark.parametrize("path", ["/account/signup", "/account/reset"])
def test_mail_server_that_is_away_is_reported_alike(
    client: Client, settings, path
) -> None:
    User.objects.create_user("known@example.org", PASSWORD)
    settings.EMAIL_BACKEND = f"{__name__}.NoServer"
    for email in ("new@example.org", "known@example.org"):
        answer = client.post(path, {"email": email})
        assert answer.status_code == 503
        assert "Try again later" in answer.content.decode()


def test_sign_up_changes_the_session_key(client: Client) -> None:
    client.get("/account/login")
    session = client.session
    session["kept"] = 1
    session.save()
    before = client.cookies["sessionid"].value
    ask(client)
    client.post(link_in(the_mail()), CHOICE)
    assert client.cookies["sessionid"].value != before


def test_logged_in_user_is_redirected_to_their_keys(client: Client) -> None:
    client.force_login(User.objects.create_user("known@example.org"))
    assert client.get("/account/signup")["Location"] == "/dashboard/"
