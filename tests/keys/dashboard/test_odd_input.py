"""Invalid input in the forms of customers is answered with a page that explains it."""

from __future__ import annotations

from itertools import product
from typing import Any

from keys.models import AllowlistKind, ApiKey, KeyVersion
from tests.keys.dashboard.conftest import Customer
from tests.support.odd import TEXTS

FORMS: list[tuple[str, dict[str, Any], str]] = [
    ("/dashboard/keys/new", {"name": "x", "networks": "alpha"}, "name"),
    ("/dashboard/keys/new", {"name": "x", "networks": "alpha"}, "networks"),
    ("delete", {}, "typed"),
    ("rename", {}, "name"),
    ("secrets/{version}", {}, "typed"),
    ("roll", {}, "overlap"),
    *(("allowlists", {}, f"typed-{kind}") for kind in AllowlistKind.values),
    *(("allowlists", {}, f"shown-{kind}") for kind in AllowlistKind.values),
    ("allowlists", {}, "method"),
    ("allowlists", {"find": "1"}, "search"),
    ("tracing/alpha", {"tracers": "callTracer"}, "reason"),
    ("tracing/alpha", {"reason": "to see"}, "tracers"),
]
"""Path of a form, its other fields, and the field that gets unusual texts."""

QUERIES = [
    ("usage", "range"),
    ("usage", "by"),
    ("usage", "of"),
    ("usage", "failed"),
    ("usage.csv", "range"),
    ("activity", "page"),
    ("tracing", "page"),
    ("connect", "network"),
]


def test_odd_text_in_a_form_is_refused_or_shown_as_it_is(customer: Customer) -> None:
    version = customer.issued.version
    for turn, (name, text) in enumerate(TEXTS.items()):
        for path, others, field in FORMS[turn % 3 :: 3]:
            place = path.format(version=version.pk)
            address = place if place.startswith("/") else customer.path(place)
            answer = customer.client.post(address, {**others, field: text})
            assert answer.status_code in (200, 302, 400, 404), (name, path, field)
            assert b"<script>alert" not in answer.content, (name, path, field)
    assert ApiKey.objects.kept().filter(pk=customer.key.pk).exists()
    assert KeyVersion.objects.get(pk=version.pk).revoked_at is None
    for path in ("", "/allowlists", "/tracing", "/activity", "/activity.csv"):
        page = customer.client.get(customer.path() + path)
        assert page.status_code == 200
        is_page = page["Content-Type"].startswith("text/html")
        assert not (is_page and b"<script>alert" in page.content)


def test_odd_text_in_a_query_is_refused_or_ignored(customer: Customer) -> None:
    for (path, field), (name, text) in product(QUERIES, TEXTS.items()):
        answer = customer.client.get(customer.path(path), {field: text})
        expected = (400,) if "\0" in text else (200, 404)
        assert answer.status_code in expected, (path, field, name)


def test_odd_number_of_a_key_is_not_found(customer: Customer) -> None:
    for number in ("0", "9" * 18, "9" * 19, "9" * 40, "-1", "1e3", "١"):
        for path in ("", "/rename", "/secrets/1", f"/secrets/{number}", "/usage"):
            address = f"/dashboard/keys/{number}{path}"
            answer = customer.client.post(address, {"name": "x"})
            assert answer.status_code in (404, 405), address
