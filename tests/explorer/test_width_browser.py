"""Text from a contract does not widen the explorer's page, whatever its characters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import Browser

from tests.explorer.pages import MARKED, transaction_path
from tests.support.browser import log_in, needs_chromium
from tests.support.live import Live, live_service
from tests.support.look import WIDTHS, set_width, take_pictures, width_of

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def live(hard_network: None) -> Iterator[Live]:
    with live_service() as running:
        yield running


def test_page_of_a_revert_with_many_marks_keeps_its_width(
    browser: Browser, live: Live, staff: Client
) -> None:
    context = browser.new_context(base_url=live.base_url)
    log_in(context, live.base_url, staff.cookies["sessionid"].value)
    page = context.new_page()
    set_width(page, WIDTHS["phone"])
    page.goto(transaction_path(MARKED))
    assert "⟨U+0301 ×232⟩" in page.locator("bdi.error").first.inner_text()
    take_pictures(page, "revert")
    assert width_of(page) == WIDTHS["phone"]
    context.close()
