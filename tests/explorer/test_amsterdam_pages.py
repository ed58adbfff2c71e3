"""Pages of blocks of Amsterdam: gas in two dimensions, access lists, protocol logs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import Browser

from abi.addresses import checksummed
from evm.addresses import SYSTEM_ADDRESS
from explorer.access_lists import MAX_LINES, OPEN_LINES
from keys.models import User
from nodeapi.chain.sources import BlockFile
from nodeapi.models import Block, BlockAccessList, Transaction
from tests.explorer.pages import parsed, text
from tests.support import amsterdam, chains
from tests.support.browser import log_in, needs_chromium
from tests.support.live import Live, live_service
from tests.support.look import WIDTHS, set_width, take_pictures, width_of

TRANSFERS = 5
"""Block with transfers of ether to old and new accounts."""
LONG = 12


@pytest.fixture(scope="module")
def staff(module_db: None) -> Client:
    with BlockFile(amsterdam.chain_file()).open() as blocks:
        chains.import_blocks("amsterdam", amsterdam.genesis(), blocks)
    client = Client()
    client.force_login(User.objects.create_user("staff@example.org", is_staff=True))
    return client


def block_page(staff: Client, number: int) -> str:
    return text(staff.get(f"/explore/amsterdam/block/{number}"))


def gas(page: str) -> list[int]:
    """Return the execution gas and the state gas of a page; nothing without them."""
    found = re.findall(r"<dt>(?:execution|state) gas</dt><dd>([\d,]+)</dd>", page)
    return [int(number.replace(",", "")) for number in found]


def transaction_path(number: int, index: int) -> str:
    row = Transaction.objects.get(block__number=number, index=index)
    return f"/explore/amsterdam/tx/0x{bytes(row.hash).hex()}"


def test_gas_of_transactions_adds_up_to_that_of_the_block(staff: Client) -> None:
    block = Block.objects.get(number=TRANSFERS)
    whole = gas(block_page(staff, TRANSFERS))
    assert max(whole) == block.gas_used
    each = [
        gas(text(staff.get(transaction_path(TRANSFERS, index))))
        for index in range(block.transaction_count)
    ]
    assert [sum(numbers) for numbers in zip(*each, strict=True)] == whole


def test_logs_of_the_protocol_are_transfers_of_ether(staff: Client) -> None:
    page = text(staff.get(transaction_path(TRANSFERS, 0)))
    logs = page[page.index('id="logs"') :]
    assert "of ether, by the protocol" in logs
    assert re.search(r"<bdi>[\d.,]+ (ether|wei)</bdi>", logs)
    assert f"/address/{checksummed(SYSTEM_ADDRESS)}" not in logs


def test_block_before_amsterdam_has_a_list_and_one_kind_of_gas(staff: Client) -> None:
    page = block_page(staff, 1)
    assert gas(page) == []
    assert 'id="access-list"' in page


def test_list_names_accounts_with_changes_and_reads(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = block_page(staff, 3)  # without transactions
    parsed(page)
    assert "<td>storage <code>0x0</code></td>" not in page
    shown = page[page.index('id="access-list"') :]
    assert (
        checksummed(bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")) in shown
    )
    assert "the block&#x27;s start" in shown
    assert "<code>0x0, 0x1, 0x2, 0x3</code>" in shown
    assert '<details class="data" open>' in shown
    monkeypatch.setattr("explorer.access_lists.MAX_SLOTS", 3)
    assert "<code>0x0, 0x1, 0x2 and 1 more</code>" in block_page(staff, 3)


def test_long_list_is_closed_and_bounded(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = block_page(staff, LONG)
    assert '<details class="data"><summary>' in page
    assert OPEN_LINES < page.count('data-label="value"') <= MAX_LINES
    monkeypatch.setattr("explorer.access_lists.MAX_LINES", OPEN_LINES)
    page = block_page(staff, LONG)
    assert page.count('data-label="value"') == OPEN_LINES
    assert re.search(r"Not shown: \d+ further lines", page)
    monkeypatch.setattr("explorer.access_lists.MAX_LIST_BYTES", 100)
    assert 'id="access-list"' not in block_page(staff, LONG)


def test_block_without_stored_list_has_no_section(staff: Client) -> None:
    listed = BlockAccessList.objects.get(block__number=4)
    BlockAccessList.objects.filter(block__number=4).delete()
    page = block_page(staff, 4)
    listed.save(force_insert=True)
    assert 'id="access-list"' not in page
    assert gas(page) == []


@pytest.fixture(scope="module")
def live(staff: Client) -> Iterator[Live]:
    with live_service() as running:
        yield running


@needs_chromium
def test_pages_keep_their_width(browser: Browser, live: Live, staff: Client) -> None:
    context = browser.new_context(base_url=live.base_url)
    log_in(context, live.base_url, staff.cookies["sessionid"].value)
    page = context.new_page()
    for name, path in (
        ("block", f"/explore/amsterdam/block/{LONG}"),
        ("empty-block", "/explore/amsterdam/block/3"),
        ("transaction", transaction_path(TRANSFERS, 1)),
    ):
        for width in WIDTHS.values():
            set_width(page, width)
            page.goto(path)
            for summary in page.locator("#access-list ~ details > summary").all():
                if not page.locator("#access-list ~ details[open]").count():
                    summary.click()
            take_pictures(page, f"amsterdam-{name}-{width}")
            assert width_of(page) == width
    context.close()
