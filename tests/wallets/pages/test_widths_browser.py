"""Text that a dapp asks to sign does not widen the page, whatever its characters."""

from __future__ import annotations

import copy

from playwright.sync_api import BrowserContext

from tests.support.browser import needs_chromium
from tests.support.look import WIDTHS, set_width, take_pictures, width_of
from tests.support.signing import MAIL
from tests.wallets.pages.conftest import Person
from wallets.signing.typed_data import read_typed_data

pytestmark = needs_chromium

RUNS = {
    "acute": "e" + "\u0301" * 240,
    "enclosing": "a" + "\u20dd" * 240,
    "vowel-sign": "क" + "\u093e" * 240,
    "spaceless": "x" * 300,
    "hidden": "\u202e" * 100,
}


def test_page_of_a_signature_keeps_its_width(
    context: BrowserContext, inhabited: Person
) -> None:
    page = context.new_page()
    set_width(page, WIDTHS["phone"])
    for name, text in RUNS.items():
        document = copy.deepcopy(MAIL)
        document["message"]["contents"] = document["domain"]["name"] = text
        asked = [
            inhabited.asked_to_sign(message="0x" + text.encode().hex()),
            inhabited.asked_to_sign(
                "eth_signTypedData_v4", data=read_typed_data(document).to_text()
            ),
        ]
        for request in asked:
            page.goto(f"/wallet/signatures/{request.pk}")
            assert page.locator("bdi").count()
            take_pictures(page, f"sign-{name}-{request.method}")
            assert width_of(page) == WIDTHS["phone"], (name, request.method)
            request.delete()  # a dapp may only have a few that are pending
