"""Unusual addresses, queries and forms never cause status 500, on any page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import pytest
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import resolve

from tests.support.crawl import crawl
from tests.support.inhabited import Inhabitants, inhabit, logged_in
from tests.support.odd import TEXTS

NUL, DIGITS = TEXTS["NUL inside"], TEXTS["number that int() refuses"]

PARTS = [NUL, DIGITS, TEXTS["huge number"], TEXTS["digit that is none"]]
"""Texts for parts of addresses. Other tests send all texts in the forms of customers."""

NAMES = frozenset(
    {
        *("q", "page", "before", "block", "of", "done", "next", "range", "by", "e"),
        *("network", "failed", "account", "live", "part", "cursor", "limit", "method"),
        *("term", "app_label", "model_name", "field_name", "code", "token", "find"),
    }
)
"""Parameters of pages. Links on pages contain only some of them."""

ADMIN_NAMES = frozenset({"_popup", "_to_field", "_changelist_filters"})
LIST_NAMES = ADMIN_NAMES | {"q", "p", "o", "all", "_facets"}


OTHER_ROW = re.compile(r"-([1-9]\d*|__prefix__)-")
"""In a field's name: the row of a list in a form, if it is not the first. All rows have
the same fields."""


@dataclass
class Page:
    """A page of a view. names: parameters of its query. texts: those that are filters."""

    client: Client
    path: str
    html: str
    names: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def statuses(self, path: str, *queries: dict[str, str]) -> Iterator[str]:
        """Yield the requests that fail."""
        for query in queries:
            address = f"{path}?{urlencode(query)}"
            status = self.client.get(address).status_code
            if status >= 500:
                yield f"{status}: {address[:200]}"


@pytest.fixture(scope="module")
def inhabitants(module_db: None) -> Inhabitants:
    return inhabit()


@pytest.fixture(scope="module")
def pages(inhabitants: Inhabitants) -> dict[str, Page]:
    """Return a page of each view, and the parameters in all links to that view."""
    found: dict[str, Page] = {}
    staff = inhabitants.staff
    for user, starts in (
        (staff, ["/admin/"]),
        (inhabitants.customer, ["/", "/dashboard/", "/wallet/", "/explore/"]),
    ):
        client = logged_in(user)
        client.raise_request_exception = False
        with httpx.Client(
            transport=httpx.WSGITransport(app=get_wsgi_application()),
            base_url="http://testserver",
            cookies={"sessionid": client.cookies["sessionid"].value},
        ) as browser:
            for one in crawl(browser, starts):
                parts = urlsplit(one.address)
                if one.name:
                    page = found.setdefault(
                        one.name, Page(client, parts.path, one.answer.text)
                    )
                    page.names |= {name for name, _ in parse_qsl(parts.query)}
    for name, page in found.items():
        page.names |= ADMIN_NAMES if name.startswith("admin:") else NAMES
    for model, options in admin.site._registry.items():
        meta = model._meta
        name = f"admin:{meta.app_label}_{meta.model_name}_changelist"
        request = RequestFactory().get("/")
        request.user = staff
        changes = options.get_changelist_instance(request)
        assert isinstance(changes, ChangeList)
        page = found[name]
        page.names |= LIST_NAMES
        for spec in changes.filter_specs:
            page.names |= {name for name in spec.expected_parameters() if name}
        page.texts = {each.name for each in meta.concrete_fields}
        if (form := found.get(name.replace("_changelist", "_add"))) is not None:
            form.names |= page.texts
    return found


def test_odd_queries_are_answered(pages: dict[str, Page]) -> None:
    failed: list[str] = []
    for turn, (name, page) in enumerate(pages.items()):
        if name.startswith("docs:"):
            continue
        for text in (NUL, DIGITS):
            failed += page.statuses(page.path, dict.fromkeys(page.names, text))
        each = page.names if name.endswith("_changelist") else page.names - NAMES
        # Lists share the code that reads a parameter: each page gets a sixth of them.
        digits, nul = (
            sorted(names)[turn % 6 :: 6] for names in (each, each | page.texts)
        )
        failed += page.statuses(page.path, *({one: DIGITS} for one in digits))
        failed += page.statuses(page.path, *({one: NUL} for one in nul))
    assert failed == []


def test_odd_addresses_are_answered(pages: dict[str, Page]) -> None:
    failed: list[str] = []
    for page in pages.values():
        parts = page.path.split("/")
        for value in map(str, resolve(page.path).kwargs.values()):
            for place in [i for i, part in enumerate(parts) if part == value]:
                for text in PARTS:
                    odd = [*parts[:place], quote(text, safe=""), *parts[place + 1 :]]
                    failed += page.statuses("/".join(odd), {})
    assert failed == []


def test_nul_in_a_session_cookie_is_answered(inhabitants: Inhabitants) -> None:
    client = Client(raise_request_exception=False)
    for path in ("/account/", "/admin/", "/dashboard/"):
        cookie = r'sessionid="abcdefgh\000"'
        answer = client.get(path, headers={"cookie": cookie})
        assert answer.status_code == 400


class Forms(HTMLParser):
    """Reads the fields of a page's forms that are posted, with their values.

    found: the fields of each form, by the form's action.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self._is_inside = False
        self._selected = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_inside = given.get("method", "").lower() == "post"
            if self._is_inside:
                self.found.append((given.get("action", ""), {}))
        if not self._is_inside:
            return
        fields = self.found[-1][1]
        name = given.get("name", "")
        if tag == "select":
            self._selected = name
            fields[name] = ""
        elif tag == "option" and "selected" in given:
            fields[self._selected] = given.get("value", "")
        elif name and tag in ("input", "textarea", "button"):
            is_off = (
                given.get("type") in ("checkbox", "radio") and "checked" not in given
            )
            fields[name] = "" if is_off else given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_inside = False


def test_odd_forms_are_answered(pages: dict[str, Page]) -> None:
    failed: list[str] = []

    def post(page: Page, path: str, fields: dict[str, str]) -> None:
        session = page.client.cookies["sessionid"].value
        with transaction.atomic():
            status = page.client.post(path, fields).status_code
            transaction.set_rollback(True)
        page.client.cookies["sessionid"] = session
        if status >= 500:
            shown = {name: value[:20] for name, value in fields.items()}
            failed.append(f"{status}: {path} {shown}")

    tried: set[tuple[str, ...]] = set()
    for page in pages.values():
        for action, fields in Forms(page.html).found:
            path = action if action.startswith("/") else page.path
            if (kind := (path, *sorted(fields))) in tried:
                continue
            tried.add(kind)
            # Forms share the kinds of their fields: a sixth of them is tried alone.
            names = [name for name in fields if not OTHER_ROW.search(name)]
            for name in names[len(tried) % 6 :: 6]:
                post(page, path, {**fields, name: NUL})
            for text in (NUL, DIGITS):
                post(page, path, dict.fromkeys(fields, text))
    assert len(tried) > 60
    assert failed == []
