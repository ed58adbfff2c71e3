"""Error pages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from config import error_pages

pytestmark = pytest.mark.urls(__name__)


def refuse(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied


def suspect(request: HttpRequest) -> HttpResponse:
    raise SuspiciousOperation("what the log is told")


def crash(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError("what the log is told")


urlpatterns = [
    path("refuse", refuse),
    path("suspect", suspect),
    path("crash", crash),
    path("", include("config.urls")),
]
handler400 = error_pages.bad_request
handler403 = error_pages.forbidden
handler404 = error_pages.not_found
handler500 = error_pages.crashed

PAGES = {
    "/nowhere": (HTTPStatus.NOT_FOUND, "Page not found"),
    "/docs/nowhere": (HTTPStatus.NOT_FOUND, "Page not found"),
    "/refuse": (HTTPStatus.FORBIDDEN, "No permission"),
    "/suspect": (HTTPStatus.BAD_REQUEST, "Bad request"),
    "/crash": (HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong"),
}


def check(answer: Any, status: HTTPStatus, title: str) -> None:
    page = answer.content.decode()
    assert answer.status_code == status
    assert page.count("<h1>") == 1
    assert f"<h1>{title}</h1>" in page
    assert "portcullis/site.css" in page
    assert "what the log is told" not in page
    assert "default-src 'none'" in answer["Content-Security-Policy"]


# This test may not use the database, so that a query would be an error.
@pytest.mark.parametrize("place", PAGES)
def test_fault_has_a_page_of_its_own_that_asks_no_database(place: str) -> None:
    check(Client(raise_request_exception=False).get(place), *PAGES[place])


def test_form_from_elsewhere_has_a_page_of_its_own() -> None:
    answer = Client(enforce_csrf_checks=True).post("/account/login")
    check(answer, HTTPStatus.FORBIDDEN, "The form was not accepted")


def test_projects_own_addresses_have_these_pages() -> None:
    from config import urls

    for name in ("handler400", "handler403", "handler404", "handler500"):
        assert getattr(urls, name) is globals()[name]
