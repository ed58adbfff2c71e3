"""Text that a dapp asks to sign does not widen the page, whatever its characters."""

from __future__ import annotations

import copy

import pytest
from playwright.sync_api import BrowserContext

from tests.support.browser import needs_chromium
from tests.support.look import WIDTHS, set_width, take_picture, width_of
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", RUNS)
def test_page_of_a_signature_keeps_its_width(
    context: BrowserContext, inhabited: Person, name: str, scheme: str
) -> None:
    document = copy.deepcopy(MAIL)
    document["message"]["contents"] = RUNS[name]
    document["domain"]["name"] = RUNS[name]
    asked = [
        inhabited.asked_to_sign(message="0x" + RUNS[name].encode().hex()),
        inhabited.asked_to_sign(
            "eth_signTypedData_v4", data=read_typed_data(document).to_text()
        ),
    ]
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)
    set_width(page, WIDTHS["phone"])
    for request in asked:
        page.goto(f"/wallet/signatures/{request.pk}")
        assert page.locator("bdi").count()
        take_picture(page, f"sign-{name}-{request.method}-{scheme}")
        assert width_of(page) == WIDTHS["phone"]
