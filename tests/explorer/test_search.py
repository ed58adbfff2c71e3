"""The search: by number, hash, address and prefix, on the networks that a visitor sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from abi.addresses import checksummed
from keys.models import User
from keys.services import issue_key
from networks.models import Network
from nodeapi.models import Block, Transaction
from tests.explorer import chain
from tests.explorer.pages import (
    block_hash,
    block_path,
    parsed,
    row,
    see,
    text,
    transaction_path,
)

pytestmark = pytest.mark.usefixtures("hard_network")

ALICE = checksummed(chain.ALICE.address)


@pytest.fixture
def one_network(customer: User) -> User:
    """Return a customer who only sees the network `hard`."""
    issue_key(
        owner=customer, networks=[Network.objects.get(slug="hard")], may_trace=True
    )
    return customer


def searched(user: User, query: str) -> str:
    """Return the path to which a search redirects."""
    response = see(user, f"/explore/search?q={query}")
    assert response.status_code == HTTPStatus.FOUND
    return response["Location"]


def test_a_single_result_is_opened(one_network: User) -> None:
    name = "0x" + bytes(row(0).hash).hex()
    assert searched(one_network, "2") == "/explore/hard/block/2"
    assert searched(one_network, block_hash(1)) == block_path(1)
    assert searched(one_network, name) == transaction_path(0)
    assert searched(one_network, name[2:].upper()) == transaction_path(0)
    assert searched(one_network, name[:14]) == transaction_path(0)
    assert searched(one_network, block_hash(2)[:15]) == block_path(2)
    address = f"/explore/hard/address/{ALICE}"
    for spelling in (ALICE, ALICE.lower(), ALICE[2:], ALICE[:20], f"%20{ALICE}%20"):
        assert searched(one_network, spelling) == address


def test_an_unused_address_has_a_page_too(one_network: User) -> None:
    unused = checksummed(b"\xf7" * 20)
    assert searched(one_network, unused) == f"/explore/hard/address/{unused}"
    page = text(see(one_network, f"/explore/hard/address/{unused}"))
    assert "This account does not exist" in page
    assert "appears in no transaction" in page


def test_a_hash_in_no_block_may_be_pending(one_network: User, staff: Client) -> None:
    unknown = f"0x{'12' * 32}"
    place = f"/explore/hard/tx/{unknown}"
    assert searched(one_network, unknown) == place
    assert b"Transaction not found" in see(one_network, place).content
    page = text(staff.get(f"/explore/search?q={unknown}"))
    for slug in ("hard", "other"):
        assert f'href="/explore/{slug}/tx/{unknown}"' in page


def test_results_of_all_networks_are_listed(staff: Client) -> None:
    page = text(staff.get("/explore/search?q=1"))
    for slug in ("hard", "other"):
        assert f'href="/explore/{slug}/block/1"' in page
    assert "2 results" in page
    parsed(page)
    page = text(staff.get(f"/explore/search?q={ALICE[:12]}"))
    assert page.count(f"<code>{ALICE}</code>") == 2


def test_networks_that_a_visitor_may_not_see_are_not_searched(
    customer: User, one_network: User
) -> None:
    issue_key(owner=customer, may_trace=False)
    assert "/other/" not in searched(one_network, "1")
    stranger = User.objects.create_user("stranger@example.org")
    assert "To see a network, request" in text(see(stranger, "/explore/search?q=1"))


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("999999", "No network has a block 999,999 yet."),
        ("9" * 20, "No network has a block"),
        ("0xabc", "at least 4 digits"),
        ("nonsense", "Enter a block number"),
        ("<script>alert(1)</script>", "Enter a block number"),
        ("0x" + "f" * 65, "has 64 digits"),
        ("f" * 199, "has 64 digits"),
        ("0xfffffffffff", "No hash or address begins with these digits."),
        ("0x" + ALICE[2:].swapcase(), "checksum of this address is wrong"),
    ],
)
def test_searches_without_a_result_say_why(
    staff: Client, query: str, advice: str
) -> None:
    page = text(staff.get(f"/explore/search?q={query}"))
    assert advice in page
    assert "<script>alert" not in page
    parsed(page)


def test_an_empty_search_explains_itself(staff: Client) -> None:
    assert "a block by its number" in text(staff.get("/explore/search"))


@contextmanager
def alike(slug: str, begin: int, count: int) -> Iterator[None]:
    """Add transactions whose hashes begin with fedc and end with a number."""
    block = Block.objects.get(network__slug=slug, number=2, is_canonical=True)
    document = block.transactions.first().document
    Transaction.objects.bulk_create(
        Transaction(
            block=block,
            index=10_000 + number,
            hash=b"\xfe\xdc" + number.to_bytes(30),
            document=document,
        )
        for number in range(begin, begin + count)
    )
    try:
        yield
    finally:
        Transaction.objects.filter(block=block, index__gte=10_000).delete()


def test_results_of_a_short_prefix_are_limited(staff: Client) -> None:
    """More transactions than a page shows have hashes with the same prefix."""
    with alike("hard", 0, 500):
        page = text(staff.get("/explore/search?q=0xfedc"))
    assert page.count("/tx/0xfedc") == 20
    assert "Enter more digits" not in page


def test_networks_that_a_visitor_cannot_see_do_not_crowd_out_others(
    one_network: User,
) -> None:
    with alike("other", 0, 500), alike("hard", 500, 3):
        page = text(see(one_network, "/explore/search?q=0xfedc"))
    assert page.count("/explore/hard/tx/0xfedc") == 3
    assert "/explore/other/" not in page


def test_a_prefix_of_more_transactions_than_are_read_is_too_short(
    one_network: User,
) -> None:
    with alike("other", 0, 1001), alike("hard", 1001, 3):
        page = text(see(one_network, "/explore/search?q=0xfedc"))
        assert "Enter more digits" in page
        longer = f"0xfedc{1001:060x}"[:-1]
        page = text(see(one_network, f"/explore/search?q={longer}"))
        assert "Enter more digits" not in page
        assert page.count("/explore/hard/tx/0xfedc") == 3


def test_a_single_result_beside_unread_transactions_is_not_opened(
    one_network: User,
) -> None:
    with alike("other", 1, 1001), alike("hard", 0, 1):
        page = text(see(one_network, "/explore/search?q=0xfedc"))
    assert "Enter more digits" in page
    assert page.count("/explore/hard/tx/0xfedc") == 1


@pytest.mark.parametrize("query", ["77", f"0x{'ab' * 32}", ALICE, ALICE[:9]])
def test_searches_use_indexes(staff: Client, query: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        staff.get(f"/explore/search?q={query}")
    tables = ("nodeapi_block", "nodeapi_transaction", "nodeapi_accountversion")
    reads = [q["sql"] for q in queries if any(table in q["sql"] for table in tables)]
    assert reads
    with connection.cursor() as cursor:
        # The tables of the test are so small that an index would take longer.
        cursor.execute("SET enable_seqscan = off")
        try:
            for sql in reads:
                cursor.execute(f"EXPLAIN {sql}")
                plan = "\n".join(line for (line,) in cursor.fetchall())
                assert "Seq Scan on nodeapi_" not in plan, plan
        finally:
            cursor.execute("RESET enable_seqscan")
