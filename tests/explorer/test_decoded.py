"""Decoded calls, logs and token transfers on pages, and malformed data."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from abi.addresses import checksummed
from keys.models import User
from nodeapi.models import Transaction
from tests.explorer import tokens
from tests.explorer.pages import parsed, text
from tests.explorer.tokens import (
    ALICE,
    ART,
    BOB,
    BUNDLE,
    COIN,
    FORGED,
    FORWARDED,
    GIFT,
    MALFORMED,
    OTHERS,
    PAYMENT,
    PRIZES,
)
from tests.support import chains


@pytest.fixture(scope="module")
def client(module_db: None) -> Client:
    chains.import_blocks("tokens", tokens.genesis(), tokens.blocks())
    client = Client()
    client.force_login(User.objects.create_user("staff@example.org", is_staff=True))
    return client


def page_of(client: Client, index: int) -> str:
    row = Transaction.objects.get(block__number=1, index=index)
    page = text(client.get(f"/explore/tokens/tx/0x{bytes(row.hash).hex()}"))
    parsed(page)
    return page


def section(page: str, name: str) -> str:
    """Return the part of a page below a heading."""
    found = re.search(rf'<h2 id="{name}">.*?(?=<h2|$)', page, re.DOTALL)
    return found[0] if found else ""


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_payment_is_decoded(client: Client) -> None:
    page = page_of(client, PAYMENT)
    assert "method transfer ERC-20" in words(page)
    assert f"to address {checksummed(BOB)}" in words(page)
    assert "amount uint256 25,000,000,000,000,000,000" in words(page)
    log = words(section(page, "logs"))
    assert f"0 Transfer by {checksummed(COIN)}" in log
    assert f"from address {checksummed(ALICE.address)}" in log
    call = words(section(page, "calls"))
    assert "transfer(address,uint256)" in call
    assert "amount uint256 25,000,000,000,000,000,000" in call


def cells(page: str) -> list[str]:
    rows = section(page, "transfers").split("<tr>")[2:]
    return [words(row) for row in rows]


def short(address: bytes) -> str:
    shown = checksummed(address)
    return f"{shown[:8]}…{shown[-4:]}"


def test_transfers_of_all_standards_are_listed(client: Client) -> None:
    alice, bob = short(ALICE.address), short(BOB)
    coin, art = short(COIN), short(ART)
    assert cells(page_of(client, PAYMENT)) == [
        f"{coin} ERC-20 {alice} {bob} – 25,000,000,000,000,000,000 in the smallest unit"
    ]
    assert cells(page_of(client, GIFT)) == [f"{art} ERC-721 {alice} {bob} 4711 –"]
    prizes = cells(page_of(client, PRIZES))
    assert [one.split(" ", 1)[1] for one in prizes] == [
        f"ERC-1155 minted {bob} 7 100",
        f"ERC-1155 minted {bob} 8 200",
    ]


def test_logs_that_do_not_fit_their_event_are_shown_as_they_are(client: Client) -> None:
    page = page_of(client, FORGED)
    assert "unknown event" in section(page, "logs")
    assert "0xffffffffff" in section(page, "logs")
    assert section(page, "transfers") == ""


def test_calls_that_do_not_fit_their_function_keep_their_selector(
    client: Client,
) -> None:
    page = page_of(client, MALFORMED)
    assert "selector 0xa9059cbb" in words(page)
    assert "method transfer" not in words(page)


def test_calls_inside_arguments_are_decoded(client: Client) -> None:
    shown = words(page_of(client, BUNDLE))
    assert "method aggregate3 Multicall3" in shown
    assert (
        f"target address {checksummed(OTHERS)} allowFailure bool true"
        f" callData bytes transfer(address,uint256) to address {checksummed(BOB)}"
        " amount uint256 9"
    ) in re.sub(r" Copy| ⧉", "", shown)


def test_inner_calls_are_decoded(client: Client) -> None:
    calls = section(page_of(client, FORWARDED), "calls")
    assert len(re.findall(r'<strong class="method"[^>]*>transfer<', calls)) == 2


def test_blocks_name_the_methods_of_transactions(client: Client) -> None:
    page = text(client.get("/explore/tokens/block/1"))
    methods = re.findall(r'<span class="badge method"[^>]*>(\w+)<', page)
    assert methods.count("transfer") == 3
    assert "safeTransferFrom" in methods


def test_addresses_have_checksums_and_links(client: Client) -> None:
    page = page_of(client, PAYMENT)
    for address in (ALICE.address, COIN, BOB):
        shown = checksummed(address)
        assert f'href="/explore/tokens/address/{shown}"' in page
        assert f'data-copy-text="{shown}"' in page
        assert re.search(f"(?i)(?<![0-9a-f]){shown}", page)
        assert address.hex() not in re.sub("0x[0-9a-f]{64}", "", page)
