"""Invalid input is answered with its errors, and changes nothing."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.utils.http import urlencode

from keys.api.documentation import document
from keys.api.throttling import gate
from keys.models import ApiKey
from networks.models import Network
from tests.keys.api.conftest import Program
from tests.keys.api.test_access import there
from tests.support.odd import TEXTS, VALUES

pytestmark = pytest.mark.django_db

RIGHT: dict[str, Any] = {
    "email": "new@example.org",
    "is_active": True,
    "name": "dapp",
    "networks": ["alpha"],
    "expires_at": "2999-01-01T00:00:00Z",
    "staff_note": "",
    "with_secret": False,
    "reason": "unpaid",
    "overlap_seconds": 0,
    "tracers": ["callTracer"],
    "note": "",
    "values": ["https://dapp.example"],
    "credits_per_second": 100,
    "burst": 1000,
    "credits_per_day": 10_000,
    "plan": None,
    "is_default": False,
    "answer": "Not now.",
}
"""Valid values by field. The customer is that of the fixture."""

BODIES = {
    "half": b'{"name": ',
    "no JSON": b"name=dapp",
    "no Unicode": b'{"name": "\xff"}',
    "number": b"5",
    "text": b'"x"',
    "null": b"null",
    "list": b"[]",
    "list of objects": b'[{"name": "dapp"}]',
    "deep": b"[" * 100_000,
    "deep object": b'{"name":' * 100_000,
    "many digits": b'{"name": ' + b"9" * 10_000 + b"}",
    "not finite": b'{"name": NaN}',
    "twice": b'{"name": "a", "name": ["b"]}',
}


def operations(*methods: str) -> list[Any]:
    return [
        pytest.param(method, path, operation, id=f"{method} {path}")
        for path, item in document()["paths"].items()
        for method, operation in item.items()
        if method in methods
    ]


def fields(operation: dict[str, Any]) -> list[str]:
    """Return the names of the fields of an operation's body."""
    content = operation.get("requestBody", {}).get("content", {})
    named = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    schema = document()["components"]["schemas"].get(named.rpartition("/")[2], {})
    return list(schema.get("properties", ()))


def refused(answer: Any) -> bool:
    """Return whether a response reports an error of the request."""
    gate.forget()
    if answer.status_code < 300:
        return False
    assert answer["Content-Type"] == "application/problem+json", answer.content
    assert answer.status_code in (400, 404, 409), answer.content
    return True


@pytest.mark.parametrize(
    ("method", "path", "operation"), operations("post", "put", "patch")
)
def test_odd_fields_are_refused_or_taken_as_they_are(
    program: Program,
    api_key: ApiKey,
    alpha: Network,
    method: str,
    path: str,
    operation: dict[str, Any],
) -> None:
    right = {**RIGHT, "customer": api_key.owner_id}
    place = there(path.replace("{network}", "alpha"), api_key)
    names = fields(operation)
    for turn, name in enumerate(names, len(path)):
        for value in [*VALUES.values()][turn % 3 :: 3]:
            body = {**{one: right[one] for one in names}, name: value}
            refused(program.ask(method.upper(), place, body))


@pytest.mark.parametrize("name", BODIES)
def test_body_that_is_no_form_is_refused(
    program: Program, api_key: ApiKey, name: str
) -> None:
    for method, path in (("POST", "keys"), ("PATCH", f"keys/{api_key.pk}")):
        answer = program.send(method, path, BODIES[name])
        assert refused(answer)
    assert ApiKey.objects.get() == api_key


@pytest.mark.parametrize(("method", "path", "operation"), operations("get"))
def test_odd_parameters_are_refused_or_find_nothing(
    program: Program,
    api_key: ApiKey,
    alpha: Network,
    method: str,
    path: str,
    operation: dict[str, Any],
) -> None:
    place = there(path.replace("{network}", "alpha"), api_key)
    inside = [
        base64.b64encode(f"p={text}".encode()).decode() for text in TEXTS.values()
    ]
    texts = [
        *TEXTS.values(),
        *inside,
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ]
    names = [one["name"] for one in operation.get("parameters", ())] + ["cursor"]
    for turn, name in enumerate(names, len(path)):
        for text in texts[turn % 3 :: 3]:
            refused(program.ask("GET", f"{place}?{urlencode({name: text})}"))
