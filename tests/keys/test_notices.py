"""Emails to customers about their keys: each is sent once to users who have chosen it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core import mail
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.models import F
from django.template import Template
from django.test import Client, override_settings
from django.test.signals import template_rendered
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from keys.models import (
    ApiKey,
    DailyUse,
    Entitlement,
    KeyVersion,
    Membership,
    Notice,
    NoticeCheck,
    NoticeKind,
    Refusal,
    Role,
    User,
)
from keys.notices import queue as queueing
from keys.notices import timed
from keys.notices.job import check_if_due, run
from keys.notices.queue import KEEP, send_waiting
from keys.notices.timed import queue_timed
from keys.services import (
    Actor,
    IssuedKey,
    decline_access,
    delete_key,
    disable_key,
    grant_entitlement,
    issue_key,
    request_access,
    revoke_version,
    roll_key,
)
from keys.services.limits import set_limits, set_plan
from keys.usage.daily import today
from networks.models import Network
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)

UNREACHABLE = override_settings(
    EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend",
    EMAIL_HOST="127.0.0.1",
    EMAIL_PORT=1,  # no mail server listens there
    EMAIL_TIMEOUT=1,
)


@pytest.fixture
def alpha() -> Network:
    return make_network("alpha", tracers=["callTracer"])


@pytest.fixture
def owner() -> User:
    return User.objects.create_user("owner@example.org")


@pytest.fixture
def issued(owner: User) -> IssuedKey:
    return issue_key(owner=owner, name="Indexer")


@pytest.fixture
def key(issued: IssuedKey) -> ApiKey:
    return issued.api_key


@pytest.fixture
def staff() -> Actor:
    return Actor(User.objects.create_user("staff@example.org", is_staff=True))


def subjects() -> list[str]:
    return [message.subject for message in mail.outbox]


def use(key: ApiKey, credits: int) -> None:
    DailyUse.objects.update_or_create(
        day=today(),
        api_key=key,
        defaults={"calls": 1, "failed": 0, "credits": credits},
    )


def test_quota_is_reported_at_80_and_at_100_percent_once_each(key: ApiKey) -> None:
    set_limits(api_key=key, credits_per_day=1000)
    use(key, 799)
    run()
    assert subjects() == []
    use(key, 800)
    run()
    run()
    assert subjects() == ["Indexer: 80 % of today's quota is used"]
    (message,) = mail.outbox
    assert message.to == ["owner@example.org"]
    assert "has used 800 of its 1,000 credits for today (80 %)" in message.body
    assert f"/dashboard/keys/{key.pk}/usage" in message.body
    assert "/account/" in message.body
    use(key, 1000)
    run()
    run()
    assert subjects()[1:] == ["Indexer: 100 % of today's quota is used"]
    assert "Calls are rejected" in mail.outbox[1].body


def test_quota_whose_rest_is_too_small_for_a_call_is_used(
    key: ApiKey, alpha: Network
) -> None:
    set_limits(api_key=key, credits_per_day=1000)
    use(key, 990)
    Refusal.objects.create(
        api_key=key, reason="daily_quota", last_at=timezone.now(), calls=1
    )
    run()
    run()
    assert subjects() == ["Indexer: 100 % of today's quota is used"]


@pytest.mark.parametrize("is_default", [True, False])
def test_quota_of_a_plan_is_reported(key: ApiKey, is_default: bool) -> None:
    plan, _ = set_plan(
        slug="gold", name="Gold", credits_per_day=1000, is_default=is_default
    )
    use(key, 900)
    if not is_default:
        run()
        assert subjects() == []
        set_limits(api_key=key, plan=plan)
    run()
    assert len(subjects()) == 1


def test_plan_without_a_quota_has_none_even_if_the_default_has_one(key: ApiKey) -> None:
    set_plan(slug="free", name="Free", credits_per_day=1000, is_default=True)
    plan, _ = set_plan(slug="paid", name="Paid")
    set_limits(api_key=key, plan=plan)
    use(key, 5000)
    run()
    assert subjects() == []


def expire(issued: IssuedKey, left: timedelta) -> datetime:
    """Let a key expire that was created long ago."""
    end = timezone.now() + left
    ApiKey.objects.filter(pk=issued.api_key.pk).update(expires_at=end)
    long_ago = timezone.now() - timedelta(days=90)
    KeyVersion.objects.update(created_at=long_ago)
    return end


def run_at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(timezone, "now", lambda: moment)
        run()


def test_expiry_is_reported_7_days_and_1_day_before(
    issued: IssuedKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = expire(issued, timedelta(days=30))
    run_at(monkeypatch, end - timedelta(days=7, minutes=1))
    assert subjects() == []
    for days in (7, 6, 2):
        run_at(monkeypatch, end - timedelta(days=days))
    assert subjects() == ["Indexer expires in 7 days"]
    for hours in (23, 22):
        run_at(monkeypatch, end - timedelta(hours=hours))
    run_at(monkeypatch, end)
    assert subjects()[1:] == ["Indexer expires in 1 day"]
    assert f"expires on {end:%Y-%m-%d %H:%M} UTC" in mail.outbox[0].body


def test_later_expiry_is_reported_again(issued: IssuedKey) -> None:
    expire(issued, timedelta(days=3))
    run()
    expire(issued, timedelta(days=5))
    run()
    run()
    assert subjects() == ["Indexer expires in 7 days"] * 2


def test_expiries_that_need_no_mail_have_none(issued: IssuedKey, staff: Actor) -> None:
    expire(issued, timedelta(days=3))
    KeyVersion.objects.update(created_at=timezone.now())  # issued for three days
    assert queue_timed(timezone.now()) == 0
    expire(issued, timedelta(days=3))
    disable_key(api_key=issued.api_key, actor=staff)
    assert queue_timed(timezone.now()) == 0


def test_replaced_secret_that_expires_is_not_reported(
    issued: IssuedKey, owner: User
) -> None:
    expire(issued, timedelta(days=90))
    roll_key(api_key=issued.api_key, overlap=timedelta(days=7), actor=Actor(owner))
    assert queue_timed(timezone.now()) == 0


def test_grant_that_expires_is_reported_before(key: ApiKey, alpha: Network) -> None:
    end = timezone.now() + timedelta(days=30)
    grant_entitlement(api_key=key, network=alpha, expires_at=end)
    send_waiting()
    assert subjects() == ["Tracing on Alpha: granted"]
    assert f"until {end:%Y-%m-%d %H:%M} UTC, with all tracers" in mail.outbox[0].body
    for days in (8, 6.9, 6, 0.9, 0.5):
        queue_timed(end - timedelta(days=days))
    send_waiting()
    assert subjects()[1:] == [
        "Tracing on Alpha expires in 7 days",
        "Tracing on Alpha expires in 1 day",
    ]
    Entitlement.objects.update(expires_at=None)
    assert queue_timed(end) == 0


def test_what_staff_do_to_secrets_is_reported(issued: IssuedKey, staff: Actor) -> None:
    rolled = roll_key(api_key=issued.api_key, actor=staff)
    send_waiting()
    assert subjects() == ["Indexer: support has rolled the key"]
    body = mail.outbox[0].body
    assert rolled.version.hint in body
    assert issued.version.hint in body
    assert "remains valid until" in body
    assert rolled.secret not in body
    revoke_version(version=rolled.version, reason="leaked on a forum", actor=staff)
    send_waiting()
    assert subjects()[1] == "Indexer: support has revoked a secret"
    assert "leaked on a forum" in mail.outbox[1].body
    delete_key(api_key=issued.api_key, actor=staff)
    send_waiting()
    assert subjects()[2] == "Indexer: support has deleted the key"
    assert len(mail.outbox) == 3


def test_what_customers_and_members_do_is_not_reported(
    issued: IssuedKey, owner: User
) -> None:
    member = User.objects.create_user("member@example.org")
    Membership.objects.create(account=owner, member=member, role=Role.DEVELOPER)
    for actor in (Actor(owner), Actor(member)):
        rolled = roll_key(api_key=issued.api_key, overlap=timedelta(0), actor=actor)
        revoke_version(version=rolled.version, reason="done", actor=actor)
    delete_key(api_key=issued.api_key, actor=Actor(member))
    assert not Notice.objects.exists()


def test_members_who_can_act_get_mails_too(
    issued: IssuedKey, owner: User, staff: Actor
) -> None:
    for role in Role:
        member = User.objects.create_user(f"a-{role}@example.org")
        Membership.objects.create(account=owner, member=member, role=role)
    revoke_version(version=issued.version, reason="leaked", actor=staff)
    send_waiting()
    assert {message.to[0] for message in mail.outbox} == {
        "owner@example.org",
        "a-owner@example.org",
        "a-developer@example.org",
    }
    for message in mail.outbox:
        assert "Account of the key: owner@example.org\n" in message.body


def test_nothing_is_sent_for_a_change_that_is_rolled_back(
    issued: IssuedKey, staff: Actor
) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        revoke_version(version=issued.version, reason="leaked", actor=staff)
        raise RuntimeError
    send_waiting()
    assert subjects() == []
    assert not Notice.objects.exists()


def test_mail_is_sent_later_if_the_mail_server_is_unavailable(
    issued: IssuedKey, staff: Actor
) -> None:
    with UNREACHABLE:
        revoke_version(version=issued.version, reason="leaked", actor=staff)
        assert KeyVersion.objects.live().count() == 0
        run()
    notice = Notice.objects.get()
    assert (notice.sent_at, notice.attempts) == (None, 1)  # tried again after a while
    run()
    assert subjects() == []
    Notice.objects.update(next_at=timezone.now())
    run()
    run()
    assert subjects() == ["Indexer: support has revoked a secret"]


def test_mails_are_rendered_when_they_are_sent(
    issued: IssuedKey, owner: User, staff: Actor, alpha: Network
) -> None:
    rendered: list[str] = []

    def note(template: Template, **_: object) -> None:
        rendered.append(str(template.name))

    key = issued.api_key
    requested = request_access(
        api_key=key, network=alpha, reason="to see", actor=Actor(owner)
    )
    set_limits(api_key=key, credits_per_day=1000)
    use(key, 800)
    template_rendered.connect(note)
    try:
        rolled = roll_key(api_key=key, actor=staff)
        revoke_version(version=rolled.version, reason="leaked", actor=staff)
        decline_access(request=requested, answer="Why <b>?", actor=staff)
        end = timezone.now() + timedelta(days=30)
        granted = ["callTracer"]
        grant_entitlement(api_key=key, network=alpha, tracers=granted, expires_at=end)
        queue_timed(timezone.now())
        queue_timed(end - timedelta(days=1))
        delete_key(api_key=key, actor=staff)
        assert rendered == []
        assert send_waiting() == len(mail.outbox)
    finally:
        template_rendered.disconnect(note)
    folder = Path(settings.BASE_DIR, "templates/keys/mail")
    assert sorted(rendered) == sorted(
        f"keys/mail/{each.name}" for each in folder.iterdir()
    )
    bodies = {name: each.body for name, each in zip(rendered, mail.outbox, strict=True)}
    assert (
        f"{end:%Y-%m-%d %H:%M} UTC, with these tracers: callTracer."
        in (bodies["keys/mail/tracing_granted.txt"])
    )
    assert "Message from support: Why <b>?" in bodies["keys/mail/access_decided.txt"]
    for body in bodies.values():
        assert re.search(r"\n[^\n]+: http://\S+/dashboard/", body), body
        assert re.search(r"\nChoose which emails you get: http://\S+/account/\n", body)


def test_mail_that_an_older_version_has_queued_is_sent(key: ApiKey) -> None:
    until = timezone.now() + timedelta(days=1)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO keys_notice (user_id, api_key_id, kind, mark, subject, text,"
            " created_at, until, next_at, attempts)"
            " VALUES (%s, %s, 'quota', 'x', 'Old', 'Text', now(), %s, now(), 0)",
            [key.owner_id, key.pk, until],
        )
    send_waiting()
    assert [(each.subject, each.body) for each in mail.outbox] == [("Old", "Text")]


def test_change_by_staff_is_announced_after_its_commit(
    issued: IssuedKey, staff: Actor
) -> None:
    announced: list[int] = []

    def listener() -> None:
        announced.append(Notice.objects.filter(sent_at=None).count())

    queueing.listen(listener)
    try:
        with transaction.atomic():
            revoke_version(version=issued.version, reason="leaked", actor=staff)
            assert announced == []
        assert announced == [1]
    finally:
        queueing.unlisten(listener)
    assert subjects() == []  # no mail is sent by the thread of the request
    delete_key(api_key=issued.api_key, actor=staff)
    assert announced == [1]


def test_mail_that_came_too_late_is_not_sent(issued: IssuedKey, staff: Actor) -> None:
    with UNREACHABLE:
        revoke_version(version=issued.version, reason="leaked", actor=staff)
    now = timezone.now()
    Notice.objects.update(next_at=now, until=now)
    run()
    assert subjects() == []
    Notice.objects.update(created_at=now - KEEP - timedelta(minutes=1))
    run()
    assert not Notice.objects.exists()


def test_one_bad_address_does_not_delay_others_for_ever(
    issued: IssuedKey, staff: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []

    def refuse_some(email: str, *_: object, **__: object) -> None:
        if email.startswith("bad"):
            raise OSError("550 no such mailbox")
        sent.append(email)

    monkeypatch.setattr(queueing, "send_once", refuse_some)
    for name in ("bad", "good"):
        user = User.objects.create_user(f"{name}@example.org")
        Notice.objects.create(
            user=user,
            api_key=issued.api_key,
            kind=NoticeKind.QUOTA,
            mark="x",
            until=timezone.now() + timedelta(days=1),
        )
    send_waiting()
    assert sent == ["good@example.org"]


def test_processes_that_check_together_send_each_mail_once(key: ApiKey) -> None:
    set_limits(api_key=key, credits_per_day=1000)
    use(key, 1000)

    def check() -> None:
        try:
            run()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(check) for _ in range(8)]:
            done.result()
    assert len(mail.outbox) == 1
    ids = [message.extra_headers["Message-ID"] for message in mail.outbox]
    assert ids == [
        f"<notice-{one.pk}-{one.created_at.timestamp():.0f}@localhost>"
        for one in Notice.objects.all()
    ]


def test_check_is_made_by_one_process_a_minute(key: ApiKey) -> None:
    set_limits(api_key=key, credits_per_day=1000)
    check_if_due()
    use(key, 1000)
    check_if_due()
    assert subjects() == []
    NoticeCheck.objects.update(checked_at=timezone.now() - timedelta(minutes=1))
    check_if_due()
    assert len(subjects()) == 1


def test_command_sends_what_is_due(
    key: ApiKey, capsys: pytest.CaptureFixture[str]
) -> None:
    set_limits(api_key=key, credits_per_day=1000)
    use(key, 1000)
    call_command("send_notices")
    assert "1 emails queued, 1 sent." in capsys.readouterr().out
    assert len(subjects()) == 1


def test_number_of_mails_a_day_is_limited(
    key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "MAX_A_DAY", 2)
    for _ in range(4):
        rolled = roll_key(api_key=key, overlap=timedelta(0))
        KeyVersion.objects.filter(pk=rolled.version.pk).update(
            revoked_at=timezone.now()
        )
    send_waiting()
    assert len(subjects()) == 2


def test_mails_beyond_the_limit_are_not_looked_at_again(
    key: ApiKey, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "MAX_A_DAY", 1)
    other = issue_key(owner=owner, name="Other").api_key
    for one in (key, other):
        set_limits(api_key=one, credits_per_day=1000)
        use(one, 1000)
    assert run() == (1, 1)
    with CaptureQueriesContext(connection) as queries:
        assert run() == (0, 0)
    assert not any('INSERT INTO "keys_notice"' in one["sql"] for one in queries)
    # Unsent notices do not count against the next day's limit.
    day = timedelta(days=1)
    Notice.objects.filter(sent_at=None).update(until=F("created_at"))
    Notice.objects.exclude(sent_at=None).update(created_at=timezone.now() - day)
    roll_key(api_key=key)
    assert send_waiting() == 1


def test_occasions_without_recipients_are_found_once(
    issued: IssuedKey,
    owner: User,
    alpha: Network,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner.muted_notices = list(NoticeKind)
    owner.save()
    monkeypatch.setattr(timed, "BATCH", 1)
    set_limits(api_key=issued.api_key, credits_per_day=1000)
    use(issued.api_key, 1000)
    end = expire(issued, timedelta(days=3))
    grant_entitlement(api_key=issued.api_key, network=alpha, expires_at=end)
    Entitlement.objects.update(granted_at=timezone.now() - timedelta(days=90))
    # The key of the user with notices is not in the first batch.
    other = issue_key(owner=User.objects.create_user("wants@example.org"), name="B")
    set_limits(api_key=other.api_key, credits_per_day=1000)
    use(other.api_key, 1000)
    asked: list[NoticeKind] = []
    recipients = queueing.recipients

    def count(api_key: ApiKey, kind: NoticeKind) -> list[User]:
        asked.append(kind)
        return recipients(api_key, kind)

    monkeypatch.setattr(queueing, "recipients", count)
    assert run() == (0, 0)
    assert sorted(asked) == ["expiry", "quota", "tracing"]
    asked.clear()
    assert run() == (1, 1)
    assert asked == ["quota"]
    asked.clear()
    assert run() == (0, 0)
    assert asked == []
    assert [message.to for message in mail.outbox] == [["wants@example.org"]]


def test_issued_key_and_internal_users_get_no_mail(alpha: Network) -> None:
    internal = User.objects.create_user("wallet@internal.invalid")
    issued = issue_key(owner=internal, may_trace=True)
    revoke_version(version=issued.version, reason="old")
    other = User.objects.create_user("other@example.org")
    issue_key(owner=other, may_trace=True)
    assert not Notice.objects.exists()


@pytest.fixture
def browser(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def test_users_choose_their_mails(
    browser: Client, owner: User, issued: IssuedKey, staff: Actor
) -> None:
    page = browser.get("/account/").content.decode()
    assert page.count(" checked") == len(NoticeKind)
    wanted = [NoticeKind.QUOTA, NoticeKind.TRACING]
    answer = browser.post("/account/", {"wanted": wanted}, follow=True)
    assert "Your choice of emails is saved." in answer.content.decode()
    assert answer.content.decode().count(" checked") == 2
    revoke_version(version=issued.version, reason="leaked", actor=staff)
    send_waiting()
    assert subjects() == []
    set_limits(api_key=issued.api_key, credits_per_day=1000)
    use(issued.api_key, 1000)
    run()
    assert len(subjects()) == 1


def test_unknown_choice_is_rejected(browser: Client, owner: User) -> None:
    answer = browser.post("/account/", {"wanted": ["everything"]})
    assert "errorlist" in answer.content.decode()
    owner.refresh_from_db()
    assert owner.muted_notices == []
