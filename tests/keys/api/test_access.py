"""Each route requires a scope of the token and a permission of its owner."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone
from drf_spectacular.validation import validate_schema

from config.logs import redact
from keys import format as key_format
from keys.api.documentation import document
from keys.api.throttling import OF_INVALID, OF_TOKEN
from keys.groups import SUPPORT
from keys.models import ApiKey, ApiToken, Scope, User
from keys.services import issue_token, revoke_token
from networks.models import Network
from tests.keys.api.conftest import Program

pytestmark = pytest.mark.django_db

ROUTES = [
    (method.upper(), re.sub(r"\{network\}", "alpha", path), operation["x-scope"])
    for path, item in document()["paths"].items()
    for method, operation in item.items()
]
"""Method, path and scope of all documented operations."""


def there(path: str, api_key: ApiKey) -> str:
    """Return a path with ids of existing objects, as far as possible."""
    named = path.replace("{key}", str(api_key.pk)).replace("{kind}", "origin")
    named = named.replace("{customer}", str(api_key.owner_id)).replace("{slug}", "free")
    return re.sub(r"\{\w+\}", "1", named).removeprefix("/api/v1/")


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_route_is_open_with_its_scope_and_closed_with_all_others(
    method: str,
    path: str,
    scope: str,
    with_scopes: Callable[..., Program],
    api_key: ApiKey,
    alpha: Network,
) -> None:
    others = with_scopes(*(set(Scope.values) - {scope}))
    told = others.problem(method, there(path, api_key), {})
    assert told["status"] == 403
    assert told["detail"] == f"The token lacks the scope {scope}."
    answer = with_scopes(scope).ask(method, there(path, api_key), {})
    # The token is accepted: success, an invalid body, or an unknown object.
    assert answer.status_code in (200, 201, 204, 400, 404, 409), answer.content
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_route_is_closed_without_a_token(
    method: str, path: str, scope: str, api_key: ApiKey
) -> None:
    answer = Program(None).ask(method, there(path, api_key), {})
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer ")


def test_document_is_valid_and_names_a_permission_for_each_route() -> None:
    validate_schema(document())
    assert len(ROUTES) > 25
    for item in document()["paths"].values():
        assert all(operation["x-permission"] for operation in item.values())
    assert Client().get("/api/v1/openapi.json").json()["openapi"].startswith("3.0")


def test_token_may_no_more_than_its_owner(api_key: ApiKey) -> None:
    owner = User.objects.create(email="support@example.org", is_staff=True)
    owner.groups.add(Group.objects.get_or_create(name=SUPPORT)[0])
    token = issue_token(owner=owner, name="bot", scopes=Scope.values)
    told = Program(token.secret).problem("DELETE", f"keys/{api_key.pk}")
    assert told["status"] == 403
    assert "keys.delete_apikey" in told["detail"]
    api_key.refresh_from_db()
    assert api_key.deleted_at is None


def test_session_is_no_token(staff: User) -> None:
    client = Client()
    client.force_login(staff)
    assert client.get("/api/v1/keys").status_code == 401


def bad_tokens(staff: User) -> dict[str, str]:
    issued = issue_token(owner=staff, name="old", scopes=["keys:read"])
    revoke_token(token=issued.token)
    expired = issue_token(owner=staff, name="older", scopes=["keys:read"])
    past = timezone.now() - timedelta(seconds=1)
    ApiToken.objects.filter(pk=expired.token.pk).update(expires_at=past)
    gone = User.objects.create(email="gone@example.org", is_staff=True)
    left = issue_token(owner=gone, name="left", scopes=["keys:read"])
    User.objects.filter(pk=gone.pk).update(is_staff=False)
    return {
        "revoked": issued.secret,
        "expired": expired.secret,
        "owner is no staff": left.secret,
        "unknown": key_format.make_key(key_format.TOKEN_PREFIX),
        "an API key": key_format.make_key(),
        "malformed": "mt_short",
        "empty": "",
    }


def test_bad_tokens_all_get_the_same_answer(staff: User) -> None:
    told = [
        Program(secret).problem("GET", "keys") for secret in bad_tokens(staff).values()
    ]
    assert {(one["status"], one["detail"]) for one in told} == {(401, "invalid token")}
    assert Program(None).ask("GET", "keys", Authorization="Basic x").status_code == 401


def test_many_wrong_tokens_are_throttled(program: Program) -> None:
    answers = [Program("wrong").ask("GET", "keys")]
    assert answers[0].status_code == 401
    # Some further requests are allowed in the seconds that the test takes.
    while answers[-1].status_code == 401 and len(answers) < 20 * OF_INVALID.burst:
        answers.append(Program("wrong").ask("GET", "keys"))
    assert len(answers) > OF_INVALID.burst
    assert answers[-1].status_code == 429
    assert int(answers[-1]["Retry-After"]) >= 1
    assert program.ask("GET", "keys").status_code == 200  # from the same address


def test_token_that_asks_too_often_has_to_wait_and_others_have_not(
    with_scopes: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = type(OF_TOKEN)(rate=1, burst=3)
    monkeypatch.setattr("keys.api.throttling.OF_TOKEN", slow)
    busy, other = with_scopes("keys:read"), with_scopes("keys:read")
    statuses = [busy.ask("GET", "plans").status_code for _ in range(5)]
    assert statuses[:3] == [200, 200, 200]
    assert statuses[-1] == 429
    assert other.ask("GET", "plans").status_code == 200


def test_token_is_stored_as_a_digest_and_hidden_in_logs(staff: User) -> None:
    issued = issue_token(owner=staff, name="billing", scopes=["keys:read"])
    row = ApiToken.objects.filter(pk=issued.token.pk).values().get()
    assert issued.secret not in str(row)
    assert issued.secret not in repr(issued)
    assert redact(f"GET {issued.secret}") == f"GET {issued.token.hint}"
    Program(issued.secret).result("GET", "keys")
    issued.token.refresh_from_db()
    assert issued.token.last_used_at is not None


def test_address_with_nothing_behind_it_is_reported_in_the_same_form() -> None:
    assert Program(None).problem("GET", "nowhere")["status"] == 404
