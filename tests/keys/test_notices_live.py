"""Mails after changes by staff, sent by the web process while pages answer."""

from __future__ import annotations

import time
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from keys.models import KeyVersion, Notice, User
from keys.services import issue_key, issue_token
from tests.support.live import Live, live_service
from tests.support.mail_server import MailServer, mail_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

MAIL_TIMEOUT_SECONDS = 10
"""`EMAIL_TIMEOUT`: a request that waited for the mail server would take longer."""


def revoke(live: Live, token: str, version: KeyVersion) -> float:
    """Revoke a secret as staff, and return the duration of the request in seconds."""
    began = time.monotonic()
    path = f"/api/v1/keys/{version.api_key_id}/versions/{version.pk}/revoke"
    answer = httpx.post(
        live.base_url + path,
        json={"reason": "leaked"},
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    return time.monotonic() - began


def test_request_does_not_wait_for_a_slow_mail_server() -> None:
    staff = User.objects.create_superuser("staff@example.org")
    token = issue_token(owner=staff, name="support", scopes=["keys:write"]).secret
    owner = User.objects.create_user("owner@example.org")
    versions = [issue_key(owner=owner).version for _ in range(4)]
    with mail_server() as server, live_service(env={"MAIL_URL": server.url}) as live:
        revoke(live, token, versions[0])
        wait_until(lambda: len(server.mails) == 1)
        server.may_answer.clear()
        for version in versions[1:3]:
            assert revoke(live, token, version) < MAIL_TIMEOUT_SECONDS
        wait_until(lambda: server.connections == 2)
        assert len(server.mails) == 1
        server.may_answer.set()
        wait_until(lambda: len(server.mails) == 3)
        fail_once(live, server, token, versions[3])
    assert not Notice.objects.filter(sent_at=None).exists()
    subjects = [line for mail in server.mails for line in mail if "Subject:" in line]
    assert len(server.mails) == len(subjects) == 5


def fail_once(live: Live, server: MailServer, token: str, version: KeyVersion) -> None:
    """Let the server reject a mail, and accept its repetition."""
    server.is_failing = True
    revoke(live, token, version)
    wait_until(lambda: Notice.objects.filter(attempts=1).exists())
    server.is_failing = False
    # The next change wakes the job, which finds that the delay has passed.
    Notice.objects.filter(sent_at=None).update(
        next_at=timezone.now() - timedelta(minutes=1)
    )
    revoke(live, token, issue_key(owner=version.api_key.owner).version)
    wait_until(lambda: len(server.mails) == 5)
