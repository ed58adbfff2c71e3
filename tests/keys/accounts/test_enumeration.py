"""Neither an answer nor its time reveals whether an address has an account.

Hashing a password takes most of a log-in's time, sending a mail most of the other forms':
hashes, emails and queries are equally many for addresses with and without an account.
"""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from keys.models import User

pytestmark = pytest.mark.django_db

KNOWN, CLOSED, NOBODY = (
    f"{name}@example.org" for name in ("known", "closed", "nobody")
)

FORMS = {
    "/account/signup": {"email": ""},
    "/account/reset": {"email": ""},
    "/account/login": {"username": "", "password": "not the password"},
    "/admin/login/": {"username": "", "password": "not the password"},
}


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Create two users. Return the list of passwords that are hashed afterwards."""
    User.objects.create_user(KNOWN, "a long pass phrase")
    User.objects.create_user(CLOSED, "a long pass phrase", is_active=False)
    found: list[str] = []
    encode = MD5PasswordHasher.encode

    def noted(hasher: MD5PasswordHasher, password: str, salt: str) -> str:
        found.append(password)
        return encode(hasher, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", noted)
    return found


@pytest.mark.parametrize("path", FORMS)
def test_forms_answer_alike_with_as_much_work(hashed: list[str], path: str) -> None:
    seen = {}
    for email in (KNOWN, CLOSED, NOBODY):
        hashed.clear()
        mail.outbox.clear()
        filled = {name: value or email for name, value in FORMS[path].items()}
        with CaptureQueriesContext(
            connection,
        ) as queries:
            answer = Client().post(path, filled)
        page = answer.content.decode().replace(email, "")
        page = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)
        work = (len(hashed), len(mail.outbox))
        seen[email] = (answer.status_code, answer.get("Location"), page, work)
        reads = [each for each in queries if each["sql"].startswith("SELECT")]
        seen[email] += (len(reads),)
    assert seen[KNOWN] == seen[NOBODY]
    assert seen[CLOSED][:4] == seen[NOBODY][:4]
