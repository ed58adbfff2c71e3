"""The admin with a second factor, in an installation that requires it."""

from __future__ import annotations

import os
import re
from base64 import b32decode
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser

from config import second_factor
from config.env import InvalidSetting
from keys.policy import CALLING_POLICY
from server import supervisor
from server.forking import ForkServer
from tests.support import web
from tests.support.browser import needs_chromium
from tests.support.installation import Installation, installation

pytest.importorskip("django_otp")

STAFF, PASSWORD = "staff@example.org", "a long password"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Installation]:
    with installation() as own:
        own.env |= {
            "STAFF_SECOND_FACTOR": "on",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
        }
        # Other apps are installed than in the other tests.
        own.forks = ForkServer("config.preload", {**os.environ, **own.env})
        own.manage("migrate", "--verbosity", "0")
        own.manage("createsuperuser", "--no-input", "--email", STAFF)
        yield own
        own.forks.close()


@pytest.fixture(scope="module")
def base_url(guarded: Installation) -> Iterator[str]:
    listeners = supervisor.listen("127.0.0.1", 0, 1)
    environ = {**os.environ, **guarded.env}
    with supervisor.Server(listeners, environ, forks=guarded.forks) as running:
        yield running.base_url


def log_in(http: httpx.Client, path: str, **fields: str) -> httpx.Response:
    page = http.get(path)
    (token,) = re.findall(r'csrfmiddlewaretoken" value="(\w+)"', page.text)
    given = {"username": STAFF, "password": PASSWORD, "next": "/admin/"}
    return http.post(path, data={**given, "csrfmiddlewaretoken": token, **fields})


def one_time_password(address: str) -> str:
    """Return the current one-time password for an otpauth:// address."""
    from django_otp.oath import totp

    (secret,) = parse_qs(urlsplit(address).query)["secret"]
    return f"{totp(b32decode(secret)):06d}"


def age_failure(guarded: Installation, hours: int) -> None:
    """Make the authenticators' latest wrong password older than it is."""
    with guarded.connect() as connection:
        connection.execute(
            "UPDATE otp_totp_totpdevice SET throttling_failure_timestamp ="
            " throttling_failure_timestamp - %s * interval '1 hour'",
            [hours],
        )


def test_admin_opens_with_a_one_time_password_and_not_without(
    guarded: Installation, base_url: str
) -> None:
    former = guarded.manage("enroll_second_factor", STAFF).strip()
    address = guarded.manage("enroll_second_factor", STAFF).strip()
    assert address.startswith("otpauth://totp/Portcullis")
    assert address != former
    with guarded.connect() as connection:  # the new authenticator replaces the former
        found = connection.execute("SELECT count(*) FROM otp_totp_totpdevice")
        assert found.fetchone() == (1,)
    with web.Client(base_url=base_url) as http:
        asked = log_in(http, "/admin/login/")
        assert asked.status_code == 200
        assert http.get("/admin/").status_code == 302
        # A user with several authenticators selects one.
        (device,) = re.findall(r'<option value="(otp_totp[^"]+)">', asked.text)
        good = {"otp_device": device, "otp_token": one_time_password(address)}
        wrong = {**good, "otp_token": "12345"}
        assert log_in(http, "/admin/login/", **wrong).status_code == 200
        # After a wrong password, the next one is rejected unchecked for a second.
        age_failure(guarded, -1)
        assert log_in(http, "/admin/login/", **good).status_code == 200
        age_failure(guarded, 2)
        assert log_in(http, "/admin/login/", **good).status_code == 302
        assert http.get("/admin/").status_code == 200
        assert http.get("/admin/keys/apikey/").status_code == 200
    with web.Client(base_url=base_url) as other:
        assert log_in(other, "/admin/login/", **good).status_code == 200
        # Each one-time password is valid once.
        assert other.get("/admin/").status_code == 302


@needs_chromium
def test_pages_of_the_second_factor_work_under_the_admins_policy(
    browser: Browser, guarded: Installation, base_url: str
) -> None:
    address = guarded.manage("enroll_second_factor", STAFF).strip()
    faults: list[str] = []
    page = browser.new_page(base_url=base_url)
    page.on("console", lambda line: faults.append(line.text))
    answer = page.goto("/admin/")
    assert answer is not None
    assert answer.header_value("content-security-policy") == CALLING_POLICY
    page.locator("#id_username").fill(STAFF)
    page.locator("#id_password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()  # the devices are known then
    devices = page.locator("#id_otp_device option[value^=otp_totp]")
    devices.first.wait_for(state="attached")
    device = devices.first.get_attribute("value")
    page.locator("#id_otp_device").select_option(value=device)
    page.locator("#id_password").fill(PASSWORD)
    page.locator("#id_otp_token").fill(one_time_password(address))
    page.get_by_role("button", name="Log in").click()
    page.locator("#user-tools").wait_for()
    page.goto("/admin/otp_totp/totpdevice/")
    link = page.locator("#result_list a[href*=change]").first.get_attribute("href")
    assert link is not None
    for path in (link, link.partition("/change")[0] + "/config/"):
        shown = page.goto(path)
        assert shown is not None
        assert shown.status == 200
    assert faults == []


def test_log_in_of_customers_does_not_open_the_admin(base_url: str) -> None:
    with web.Client(base_url=base_url) as http:
        assert log_in(http, "/account/login", next="").status_code == 302
        assert http.get("/dashboard/").status_code == 200
        refused = http.get("/admin/")
        assert refused.status_code == 302
        assert refused.headers["location"].startswith("/admin/login/")


def test_setting_without_the_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(second_factor, "find_spec", lambda _: None)
    with pytest.raises(InvalidSetting, match=r"requirements-otp\.txt"):
        second_factor.require_second_factor([], [])
