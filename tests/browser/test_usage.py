"""A customer with a phone looks up failed calls of a key, and chooses emails."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect

from keys.models import KeyFailures, NoticeKind, User
from keys.services import issue_key
from networks.models import Network
from tests.browser.conftest import sign_in
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.usage import add_usage
from tests.support.wallet import new_user

pytestmark = needs_chromium


def test_long_tables_are_paged_on_a_phone(browser: Browser, live: Live) -> None:
    user = new_user()
    key = issue_key(owner=user, name="Indexer").api_key
    network = Network.objects.get(slug="sample")
    now = timezone.now()
    for minutes in (2, 50):
        add_usage(key, network, now - timedelta(minutes=minutes))
    KeyFailures.objects.create(
        api_key=key,
        latest=[
            [now.timestamp() - n, network.pk, f"eth_m{n}", -32601, "MethodNotFound"]
            for n in range(15)
        ],
        unknown_methods={"eth_getBlockbyHash": [3, now.timestamp()]},
    )
    phone = {"width": 390, "height": 800}
    context = browser.new_context(base_url=live.base_url, viewport=phone)
    sign_in(context, live, user)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{key.pk}/usage")
    page.get_by_role("link", name="1 hour", exact=True).click()

    page.get_by_text("Table of calls by method").click()
    table = page.get_by_role("region", name="Calls by method")
    pager = page.get_by_role("navigation", name="Pages: Calls by method")
    expect(pager).to_contain_text("49–60 of 60")
    assert table.locator("tbody tr:visible").count() == 12
    pager.get_by_role("button", name="Earlier").click()
    expect(pager).to_contain_text("37–48 of 60")
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(pager).to_be_hidden()
    assert table.locator("tbody tr:visible").count() == 60

    main = page.get_by_role("main")
    expect(main).to_contain_text("Did you mean eth_getBlockByHash?")
    expect(main).to_contain_text("eth_m9")
    expect(main).not_to_contain_text("eth_m10")
    page.get_by_role("link", name="Older →").click()
    expect(main).to_contain_text("eth_m10")
    expect(page.locator(".views [aria-current]").first).to_have_text("1 hour")
    page.get_by_role("link", name="method not found").first.click()
    expect(page).to_have_url(f"{live.base_url}/docs/errors#MethodNotFound")
    context.close()


def test_credits_of_methods_are_paged_on_a_phone(browser: Browser, live: Live) -> None:
    phone = {"width": 390, "height": 800}
    with browser.new_context(base_url=live.base_url, viewport=phone) as context:
        page = context.new_page()
        page.goto("/docs/limits")
        rows = page.get_by_role("region", name="Credits of methods").locator("tbody tr")
        pager = page.get_by_role("navigation", name="Pages: Credits of methods")
        expect(pager).to_contain_text(f"1–20 of {rows.count()}")
        expect(pager.get_by_role("button", name="Previous")).to_be_disabled()
        pager.get_by_role("button", name="Next").click()
        expect(pager).to_contain_text(f"21–40 of {rows.count()}")
        expect(rows.filter(visible=True)).to_have_count(20)


@pytest.mark.parametrize(
    ("address", "table", "row"),
    [
        ("/docs/networks#trace_filter", "Methods", "trace_filter"),
        ("/docs/errors#unknown_network", "Errors with a reason", "unknown_network"),
    ],
)
def test_link_to_a_row_opens_its_page_on_a_phone(
    browser: Browser, live: Live, address: str, table: str, row: str
) -> None:
    phone = {"width": 390, "height": 800}
    with browser.new_context(base_url=live.base_url, viewport=phone) as context:
        page = context.new_page()
        page.goto(address)
        shown = page.get_by_role("region", name=table).get_by_text(row, exact=True)
        expect(shown).to_be_in_viewport()
        pager = page.get_by_role("navigation", name=f"Pages: {table}")
        pager.get_by_role("button", name="Previous").click()
        expect(shown).to_be_hidden()


def test_user_switches_mails_off(browser: Browser, live: Live) -> None:
    user = new_user()
    context = browser.new_context(base_url=live.base_url)
    sign_in(context, live, user)
    page = context.new_page()
    page.goto("/account/")
    page.get_by_role("checkbox", name="daily quota").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("is saved")
    expect(page.get_by_role("checkbox", name="daily quota")).not_to_be_checked()
    expect(page.get_by_role("checkbox", name="expires in")).to_be_checked()
    assert User.objects.get(pk=user.pk).muted_notices == [NoticeKind.QUOTA]
    context.close()
