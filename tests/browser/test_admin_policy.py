"""Admin pages work under their policy: pop-ups, look-ups, calendars, log-in, second factor.

An error in the browser's console fails the test; see `context`.
"""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import Browser, BrowserContext, Page, expect

from keys.models import Plan, User
from keys.services import create_key
from tests.browser.conftest import PASSWORD, sign_in
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.wallet import new_user

pytestmark = needs_chromium


@pytest.fixture
def page(context: BrowserContext, live: Live) -> Page:
    sign_in(context, live, User.objects.create_superuser(f"{uuid4()}@example.org"))
    return context.new_page()


def test_related_object_is_added_in_a_popup(page: Page) -> None:
    api_key = create_key(owner=new_user(), name="Indexer")
    page.goto(f"/admin/keys/keylimits/add/?api_key={api_key.pk}")
    with page.expect_popup() as opened:
        page.locator("#add_id_plan").click()
    popup = opened.value
    popup.locator("#id_slug").fill("silver")
    popup.locator("#id_name").fill("Silver")
    popup.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#id_plan option:checked")).to_have_text(re.compile("Silver"))
    assert Plan.objects.filter(slug="silver").exists()


def test_owner_is_looked_up_while_typing(page: Page) -> None:
    owner = new_user()
    page.goto("/admin/keys/apikey/add/")
    page.locator(".field-owner .select2-selection").click()
    page.locator(".select2-search__field").fill(owner.email)
    page.get_by_role("option", name=owner.email).click()
    expect(page.locator("#id_owner option:checked")).to_have_text(owner.email)


def test_calendar_and_boxes_of_choices_work(page: Page) -> None:
    api_key = create_key(owner=new_user(), name="Indexer")
    page.goto(f"/admin/keys/apikey/{api_key.pk}/change/")
    calendar = page.locator("[id^=calendarlink]").first
    calendar.click()
    page.locator(".calendarbox td a").first.click()
    expect(page.locator("#id_expires_at_0")).not_to_have_value("")
    page.locator("#id_networks_add_all, #id_networks_add_all_link").first.click()
    expect(page.locator("#id_networks_from option")).to_have_count(0)


def test_markup_in_a_page_runs_nothing(browser: Browser, live: Live) -> None:
    page = browser.new_page(base_url=live.base_url)
    page.goto("/admin/")
    blocked = page.evaluate("""new Promise((done) => {
        document.addEventListener("securitypolicyviolation",
            (one) => done(one.effectiveDirective));
        const image = document.createElement("img");
        image.setAttribute("onerror", "document.title = 'owned'");
        image.src = "/nowhere.png";
        document.body.append(image);
    })""")
    assert blocked == "script-src-attr"
    assert page.title() != "owned"
    page.close()


def test_staff_log_in_and_out(browser: Browser, live: Live) -> None:
    staff = User.objects.create_superuser("in@example.org")
    # The server does not know the password hasher of the tests.
    staff.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt")
    staff.save()
    context = browser.new_context(base_url=live.base_url)
    faults: list[str] = []
    context.on("console", lambda line: faults.append(line.text))
    page = context.new_page()
    page.goto("/admin/")
    page.locator("#id_username").fill("in@example.org")
    page.locator("#id_password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#user-tools")).to_contain_text("Log out", ignore_case=True)
    page.locator("#logout-form button").click()
    expect(page.locator("h1").first).to_be_visible()
    context.close()
    assert faults == []
