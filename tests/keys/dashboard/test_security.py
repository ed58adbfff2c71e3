"""Users neither see nor change other users' keys; security of the pages."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import URLPattern

from keys.dashboard.urls import urlpatterns
from keys.models import AccessRequest, ApiKey
from keys.services import request_access
from tests.keys.dashboard.conftest import Customer, shown_secret

OF_A_KEY = [
    pattern for pattern in urlpatterns if str(pattern.pattern).startswith("keys/<int")
]


def path_of(pattern: URLPattern, owner: Customer, asked: AccessRequest) -> str:
    """Return the address of one of the dashboard's pages."""
    path = str(pattern.pattern).replace("<int:pk>", str(owner.key.pk))
    path = path.replace("<int:version_pk>", str(owner.issued.version.pk))
    path = path.replace("<int:request_pk>", str(asked.pk))
    path = path.replace("<slug:slug>", "alpha")
    path = path.replace("<int:member_pk>", str(owner.member.pk))
    path = path.replace("<int:invitation_pk>", str(owner.invitation.pk))
    assert "<" not in path
    return f"/dashboard/{path}"


@pytest.fixture
def asked(customer: Customer, alpha) -> AccessRequest:
    return request_access(api_key=customer.key, network=alpha, reason="x")


def test_page_of_another_customer_is_not_found(
    customer: Customer, stranger: Customer, asked: AccessRequest
) -> None:
    for pattern in OF_A_KEY:
        path = path_of(pattern, customer, asked)
        absent = path.replace(f"keys/{customer.key.pk}", "keys/999999")
        before = customer.events()
        answers = {
            method: [
                getattr(stranger.client, method)(p).status_code for p in (path, absent)
            ]
            for method in ("get", "post")
        }
        # Another user's object is answered like a missing one: 404, or 405 before a
        # look-up.
        assert all(known == unknown for known, unknown in answers.values()), path
        assert {code for codes in answers.values() for code in codes} <= {404, 405}
        assert 404 in answers["get"] + answers["post"], path
        assert customer.events() == before, path
        assert customer.client.get(path).status_code in (200, 405), path


def test_anonymous_users_are_redirected_to_the_login(
    customer: Customer, asked: AccessRequest
) -> None:
    for pattern in urlpatterns:
        path = path_of(pattern, customer, asked)
        for answer in (Client().get(path), Client().post(path)):
            assert answer.status_code == 302, path
            assert answer["Location"] == f"/account/login?next={path}"


def test_secret_or_request_of_another_key_is_not_found(
    customer: Customer, stranger: Customer, asked: AccessRequest
) -> None:
    other = customer.issued.version
    answer = stranger.post(f"secrets/{other.pk}", typed=other.hint[-4:])
    assert answer.status_code == 404
    assert stranger.post(f"tracing/requests/{asked.pk}/withdraw").status_code == 404
    other.refresh_from_db()
    asked.refresh_from_db()
    assert (other.revoked_at, asked.status) == (None, "pending")


def test_staff_have_no_other_keys_in_the_dashboard_than_their_own(
    customer: Customer, stranger: Customer
) -> None:
    stranger.user.is_staff = stranger.user.is_superuser = True
    stranger.user.save()
    assert stranger.client.get(customer.path()).status_code == 404


@pytest.mark.parametrize(
    "path", ["reveal", "roll", "rename", "disable", "enable", "delete", "allowlists"]
)
def test_forms_of_other_sites_are_refused(customer: Customer, path: str) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(customer.user)
    before = customer.events()
    form = {"overlap": "0", "typed": "First", "name": "x", "typed-ip": "::1"}
    assert strict.post(customer.path(path), form).status_code == 403
    assert customer.events() == before


def test_pages_stay_out_of_frames_and_caches_and_run_our_files_alone(
    customer: Customer, asked: AccessRequest
) -> None:
    for pattern in urlpatterns:
        path = path_of(pattern, customer, asked)
        answer = customer.client.get(path)
        if answer.status_code == 405:
            continue
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert "unsafe" not in policy, path
        assert answer["X-Frame-Options"] == "DENY", path
        assert "no-store" in answer["Cache-Control"], path
        assert answer["Referrer-Policy"] == "same-origin", path
        page = answer.content.decode()
        inline = r"<script(?![^>]*\bsrc=)|\bon\w+=|\bstyle=|javascript:"
        assert not re.search(inline, page), path
        assert not re.search(r'(src|href)="(https?:)?//', page), path


def test_key_stands_in_no_address_that_a_page_leads_to(customer: Customer) -> None:
    """Otherwise, Referer headers and the browser's history would contain the key."""
    answer = customer.post("roll", overlap="0")
    secret = shown_secret(answer)
    page = answer.content.decode()
    assert secret not in answer.wsgi_request.get_full_path()
    for attribute in re.findall(r'(?:href|action|src|value)="([^"]*)"', page):
        assert secret not in attribute
    assert secret not in str(answer.headers)
    assert secret not in str(customer.client.cookies)
    assert secret not in str(dict(customer.client.session))


def test_names_are_shown_as_text(customer: Customer) -> None:
    name = "<script>alert(1)</script>\"'{{ 7 }}"
    customer.post("rename", name=name)
    for path in ("", "connect", "tracing", "allowlists", "activity", "roll", "delete"):
        assert "<script>alert" not in customer.page(path)
    assert "<script>alert" not in customer.client.get("/dashboard/").content.decode()


def test_wrong_host_is_shown_only_to_its_sender(customer: Customer, settings) -> None:
    settings.PUBLIC_URL = "https://rpc.example.org"
    answer = customer.client.get(customer.path("connect"), HTTP_HOST="evil.example")
    page = answer.content.decode()
    assert "https://rpc.example.org/alpha/v3" in page
    assert "evil.example" not in page
    settings.PUBLIC_URL = ""
    odd = customer.client.get(customer.path("connect"), HTTP_HOST='x"><script>')
    assert odd.status_code == 400


def test_disabled_account_is_out_at_once(customer: Customer) -> None:
    customer.user.is_active = False
    customer.user.save()
    assert customer.client.get("/dashboard/").status_code == 302
    assert customer.post("reveal").status_code == 302
    assert ApiKey.objects.get().versions.count() == 1
