"""The page of an address: state, creation, and transactions by page."""

from __future__ import annotations

import re
from http import HTTPStatus

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from abi.addresses import checksummed
from explorer.accounts import PAGE_SIZE
from keys.models import User
from nodeapi.models import Transaction
from tests.explorer import tokens
from tests.explorer.pages import CREATION, parsed, row, text
from tests.explorer.tokens import ALICE, BOB, COIN, FORWARDER
from tests.support import chains


@pytest.fixture(scope="module")
def client(hard_network: None) -> Client:
    chains.import_blocks("tokens", tokens.genesis(), tokens.blocks())
    client = Client()
    client.force_login(User.objects.create_user("boss@example.org", is_staff=True))
    return client


def path(address: bytes, slug: str = "tokens") -> str:
    return f"/explore/{slug}/address/{checksummed(address)}"


def facts(page: str) -> dict[str, str]:
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page, re.DOTALL)
    return {
        name: " ".join(re.sub("<[^>]+>", " ", value).split()) for name, value in found
    }


def listed(page: str) -> list[str]:
    return re.findall(r'/tx/(0x\w{64})" title', page)


def test_an_account_shows_balance_and_nonce(client: Client) -> None:
    page = text(client.get(path(ALICE.address)))
    found = facts(page)
    assert found["nonce"] == "67"
    assert re.fullmatch(r"999,99\d\.\d+ ether", found["balance"])
    assert found["code"] == "none"
    parsed(page)


def test_a_contract_shows_its_code(client: Client) -> None:
    found = facts(text(client.get(path(COIN))))
    assert re.fullmatch(r"\d+ bytes Show the code 0x[0-9a-f]+", found["code"])
    assert re.fullmatch(r"0x[0-9a-f]{64}", found["code hash"])


def test_a_created_contract_leads_to_its_creation(client: Client) -> None:
    creation = text(client.get(f"/explore/hard/tx/0x{bytes(row(CREATION).hash).hex()}"))
    contract = re.search(r"<dt>contract</dt><dd><a [^>]*title=\"(0x\w{40})\"", creation)
    assert contract is not None
    page = text(client.get(f"/explore/hard/address/{contract[1].lower()}"))
    assert facts(page)["created in"] == f"0x{bytes(row(CREATION).hash).hex()}"


def test_transactions_are_listed_by_page_each_once(client: Client) -> None:
    address, pages, seen = path(COIN), 0, []
    older: str | None = ""
    while older is not None:
        page = text(client.get(f"{address}{older}"))
        parsed(page)
        assert len(listed(page)) <= PAGE_SIZE
        seen += listed(page)
        pages += 1
        found = re.search(r'rel="next" href="(\?before=\d+-\d+)#', page)
        older = found[1] if found else None
    rows = Transaction.objects.filter(block__network__slug="tokens")
    newest = rows.order_by("-block__number", "-index")
    expected = [
        f"0x{bytes(one.hash).hex()}"
        for one in newest
        if checksummed(COIN)[2:].lower().encode() in bytes(one.document)
        or checksummed(FORWARDER)[2:].lower().encode() in bytes(one.document)
    ]
    assert seen == expected
    assert pages == 3


def test_calls_within_transactions_count_as_internal(client: Client) -> None:
    page = text(client.get(f"{path(COIN)}?before=2-0"))
    assert ">internal</span>" in page
    assert ">in</span>" in page
    assert ">out</span>" in text(client.get(path(ALICE.address)))


def test_the_receiver_of_tokens_alone_is_in_no_transaction(client: Client) -> None:
    page = text(client.get(path(BOB)))
    assert len(listed(page)) == 1  # the transaction that the account has sent to itself


@pytest.mark.parametrize(
    "before", ["", "1", "x-1", "1-x", "-1-1", "9" * 30 + "-1", "²-1"]
)
def test_a_cursor_that_is_none_is_not_found(client: Client, before: str) -> None:
    response = client.get(f"{path(COIN)}?before={before}")
    assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_page_past_the_oldest_transaction_is_empty(client: Client) -> None:
    assert "no older transactions" in text(client.get(f"{path(COIN)}?before=0-0"))


def test_an_address_page_takes_few_queries(client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        client.get(path(COIN))
    assert len(queries) < 15


@pytest.mark.parametrize("name", ["0x12", "0x" + "g" * 40, "12" * 20])
def test_what_is_no_address_is_not_found(client: Client, name: str) -> None:
    response = client.get(f"/explore/tokens/address/{name}")
    assert response.status_code == HTTPStatus.NOT_FOUND


def test_blocks_are_found_by_number(client: Client) -> None:
    page = text(client.get("/explore/hard/block/2"))
    assert "Block 2" in page
    assert "?page=2#transactions" in page
    for absent in ("3", "99999999999", "9" * 18):
        response = client.get(f"/explore/hard/block/{absent}")
        assert response.status_code == HTTPStatus.NOT_FOUND
