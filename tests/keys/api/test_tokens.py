"""Tokens: created in the admin and on the command line, and revoked permanently."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client

from keys import format as key_format
from keys.models import ApiToken, User
from keys.services import issue_token
from tests.keys.api.conftest import Program

pytestmark = pytest.mark.django_db

TOKENS = "/admin/keys/apitoken/"


def test_command_issues_a_token_that_works(staff: User) -> None:
    out = StringIO()
    options = {"owner": staff.email, "name": "billing", "scope": ["keys:read"]}
    call_command("issue_api_token", json=True, stdout=out, **options)
    made = json.loads(out.getvalue())
    assert made["scopes"] == ["keys:read"]
    assert Program(made["token"]).ask("GET", "keys").status_code == 200
    with pytest.raises(CommandError, match="no user has the email address"):
        call_command("issue_api_token", **{**options, "owner": "no@example.org"})


def test_customers_get_no_tokens(customer: User) -> None:
    with pytest.raises(ValidationError):
        issue_token(owner=customer, name="x", scopes=["keys:read"])


def test_admin_shows_a_new_token_once_and_revokes_it(
    staff: User, client: Client
) -> None:
    client.force_login(staff)
    form = {"owner": staff.pk, "name": "bot", "scopes": ["keys:read", "usage:read"]}
    answer = client.post(f"{TOKENS}add/", form)
    assert "no-store" in answer["Cache-Control"]
    found = re.search(r'id="secret">([^<]+)<', answer.content.decode())
    assert found is not None
    assert key_format.is_well_formed(found[1], key_format.TOKEN_PREFIX)
    token = ApiToken.objects.get()
    assert (token.created_by, token.scopes) == (staff, ["keys:read", "usage:read"])
    assert found[1] not in client.get(f"{TOKENS}{token.pk}/change/").content.decode()
    chosen = {"action": "revoke", "_selected_action": [token.pk]}
    client.post(TOKENS, chosen)
    assert Program(found[1]).ask("GET", "keys").status_code == 401


def test_staff_can_not_create_tokens_for_other_users(
    staff: User, client: Client
) -> None:
    officer = User.objects.create(email="officer@example.org", is_staff=True)
    officer.user_permissions.add(Permission.objects.get(codename="add_apitoken"))
    client.force_login(officer)
    form = {"owner": staff.pk, "name": "bot", "scopes": ["keys:write"]}
    answer = client.post(f"{TOKENS}add/", form)
    assert answer.status_code == 200
    assert "Select a valid choice" in answer.content.decode()
    assert not ApiToken.objects.exists()
