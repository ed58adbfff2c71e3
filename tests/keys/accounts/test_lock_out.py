"""A lock-out after wrong passwords is shown for known and unknown addresses alike."""

from __future__ import annotations

import pytest
from django.test import Client

from keys.accounts.forms import LOCKED_OUT
from keys.login import MAX_FAILURES_OF_PAIR
from keys.models import User

pytestmark = pytest.mark.django_db

KNOWN, NOBODY = "known@example.org", "nobody@example.org"


@pytest.mark.parametrize("path", ["/account/login", "/admin/login/"])
@pytest.mark.parametrize("email", [KNOWN, NOBODY])
def test_lockout_is_reported(path: str, email: str) -> None:
    User.objects.create_superuser(KNOWN, "a long pass phrase")
    told = []
    for password in ["wrong"] * MAX_FAILURES_OF_PAIR + ["a long pass phrase"]:
        answer = Client().post(path, {"username": email.title(), "password": password})
        assert answer.status_code == 200
        told.append(LOCKED_OUT in answer.content.decode())
    assert told == [False] * (MAX_FAILURES_OF_PAIR - 1) + [True, True]
