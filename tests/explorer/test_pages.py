"""The content of the pages of blocks and transactions."""

from __future__ import annotations

import re
from http import HTTPStatus

import pytest

from nodeapi.models import Block, Transaction
from tests.explorer import chain
from tests.explorer.pages import (
    CREATION,
    MIXED,
    OWN_ERROR,
    REVERTED,
    TURNED,
    block_hash,
    block_path,
    parsed,
    text,
    transaction_path,
)

pytestmark = pytest.mark.usefixtures("hard_network")

OUR_SCRIPTS = 1
"""The script that copies addresses."""


def test_pages_run_our_script_only_and_stand_in_no_frame_and_no_cache(staff):
    for path in (block_path(), transaction_path(MIXED)):
        response = staff.get(path)
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self'" in policy
        assert "connect-src" not in policy
        assert "unsafe" not in policy
        assert response["Cache-Control"] == "private, no-store"
        assert parsed(text(response)).scripts == OUR_SCRIPTS


def test_a_block_shows_its_transactions_a_hundred_at_a_time(staff):
    pages = [text(staff.get(f"{block_path(2)}?page={page}")) for page in (1, 2)]
    found = [re.findall(r"/tx/(0x\w{64})", page) for page in pages]
    hashes = Transaction.objects.filter(block__network__slug="hard", block__number=2)
    expected = ["0x" + bytes(t.hash).hex() for t in hashes.order_by("index")]
    assert found == [expected[:100], expected[100:]]
    assert text(staff.get(block_path(2))).count("/tx/") == 100


@pytest.mark.parametrize("page", ["0", "3", "-1", "x", "9" * 30, "²", ""])
def test_a_page_that_is_not_there_is_not_found(staff, page):
    response = staff.get(f"{block_path(2)}?page={page}")
    assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_block_leads_to_its_parent_and_its_children(staff):
    page = text(staff.get(block_path(1)))
    parent, child = (f'href="{block_path(number)}"' for number in (0, 2))
    assert f'<a rel="prev" {parent}' in page
    assert f'<a rel="next" {child}' in page
    assert "No parent" in text(staff.get(block_path(0)))


def test_a_block_shows_status_gas_value_and_selector(staff):
    cells = re.findall(r'<tr>\s*<td class="number" data-label="No.">.*?</tr>', text(staff.get(block_path())), re.DOTALL)  # fmt: skip
    assert len(cells) == 8
    assert all(word in cells[REVERTED] for word in ("failed", "0x08c379a0"))
    assert all(word in cells[CREATION] for word in ("success", "creation", "1 ether"))


@pytest.mark.parametrize("path", ["block", "tx"])
def test_a_hash_that_is_not_there_is_not_found(staff, path):
    response = staff.get(f"/explore/hard/{path}/0x{'ab' * 32}")
    assert response.status_code == HTTPStatus.NOT_FOUND
    what = {"block": "Block", "tx": "Transaction"}[path]
    assert f"<h1>{what} not found</h1>" in response.content.decode()


def test_a_transaction_is_found_in_the_block_that_is_named(staff):
    path = transaction_path(0)
    assert f"?block={block_hash(1)}" not in text(staff.get(f"{path}?block={block_hash(1)}"))  # fmt: skip
    for other in (block_hash(2), "0x", "zz"):
        response = staff.get(f"{path}?block={other}")
        assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_side_blocks_transactions_are_shown_as_they_were_there(staff):
    side = Block.objects.get(network__slug="hard", is_canonical=False)
    path = f"/explore/hard/block/0x{bytes(side.hash).hex()}"
    link = f"{transaction_path(REVERTED)}?block=0x{bytes(side.hash).hex()}"
    page = text(staff.get(path))
    assert ">orphaned</span>" in page
    assert f'href="{link}"' in page
    assert f'<code class="short">{block_hash(1)}</code>' in page
    assert "in a side block" in text(staff.get(link))
    assert "orphaned" not in text(staff.get(transaction_path(REVERTED)))
    assert f'href="{path}">Child block 1 (side block)' in text(staff.get(block_path(0)))


def test_what_a_revert_says_is_text_and_nothing_else(staff):
    page = text(staff.get(transaction_path(REVERTED)))
    assert chain.SCRIPT not in page
    assert "“&lt;script&gt;alert(1)&lt;/script&gt;”" in page
    assert parsed(page).scripts == OUR_SCRIPTS


def test_what_a_revert_says_turns_no_writing_around(staff):
    page = text(staff.get(transaction_path(TURNED)))
    assert "“a⟨U+202E⟩dlog⟨U+0000⟩”" in page
    assert "\u202e" not in page
    assert "\0" not in page


def test_an_error_of_the_contracts_own_is_named_by_its_selector(staff):
    assert "error 0x01020304" in text(staff.get(transaction_path(OWN_ERROR)))


def test_calls_of_every_kind_are_shown(staff):
    page = text(staff.get(transaction_path(MIXED)))
    for kind, type_ in (
        ("call", "CALL"),
        ("delegate", "DELEGATECALL"),
        ("failed", "STATICCALL"),
        ("failed", "CREATE"),
        ("create", "CREATE"),
    ):
        assert f'<span class="badge {kind}">{type_}</span>' in page
    assert "“not today”" in page
    assert page.count("<dt>log ") == 3
    assert '<span class="value">1 ether</span>' in page


def test_changes_of_balances_and_slots_are_shown(staff):
    page = text(staff.get(transaction_path(MIXED)))
    changes = page[page.index('id="changes"') :]
    assert "5 ether" in changes
    assert "4 ether <small>(−1 ether)" in changes
    slots = re.findall(r"storage <code>(\w+)</code>.*?<code>(\w+)</code>.*?<code>(\w+)</code>", changes, re.DOTALL)  # fmt: skip
    assert slots == [("0x1", "0x0", "0x7"), ("0x2", "0x9", "0x0"), ("0x3", "0x0", "0x1")]  # fmt: skip


def test_a_creation_shows_its_contract(staff):
    page = text(staff.get(transaction_path(CREATION)))
    assert re.search(
        r'<dt>contract</dt><dd><a [^>]*href="/explore/hard/address/0x\w{40}"', page
    )
    assert "does not exist</td>" in page
