"""The page of a network: newest blocks, their states, and reorganisations."""

from __future__ import annotations

import re
from http import HTTPStatus

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from explorer.views import PAGE_SIZE
from keys.models import User
from keys.services import issue_key
from networks.models import Network
from nodeapi.models import Block, Reorganisation
from nodeapi.status.reorganisations import MAX_BLOCKS
from tests.explorer.pages import parsed, see, text
from tests.support.followed import ADDED, REPLACED, FollowedChain, add_upstreams
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chain() -> FollowedChain:
    return FollowedChain()


@pytest.fixture
def boss() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("boss@example.org", is_staff=True))
    return client


def hex_of(block: object) -> str:
    return "0x" + block.header.hash.hex()


def listed(page: str) -> list[int]:
    """Return the numbers of the blocks in the table of a network's page."""
    return [int(one) for one in re.findall(r'block/0x\w{64}">(\d+)</a>', page)]


def state(client: Client, path: str) -> str:
    """Return the state that the heading of a page shows."""
    heading = re.search(r"<h1>.*?</h1>", text(client.get(path)), re.DOTALL)
    return re.findall(r'title="[^"]+">(\w+)<', heading[0])[0]


def test_newest_blocks_are_listed_and_older_ones_follow(chain, boss):
    chain.grow(PAGE_SIZE + 5)
    head = PAGE_SIZE + 5
    page = text(boss.get("/explore/live/"))
    assert listed(page) == list(range(head, 5, -1))
    assert "← Newer" not in page
    older = re.search(r'rel="next" href="(\?before=\d+)"', page)[1]
    page = text(boss.get(f"/explore/live/{older}"))
    assert listed(page) == list(range(5, -1, -1))
    assert "Oldest" in page
    assert '<a rel="prev" href="/explore/live/">← Newest' in page


def test_a_block_is_shown_with_gas_fee_and_age(chain, boss):
    (block,) = chain.grow(1, transactions=3)
    page = text(boss.get("/explore/live/"))
    row = re.search(rf'<tr id="block-{hex_of(block)}">.*?</tr>', page, re.DOTALL)[0]
    header = block.header
    share = f"{header.gas_used / header.gas_limit:.1%}"
    assert f"{header.gas_used:,} <small>{share}</small>" in row
    assert f'<rect width="{share}"' in row
    assert 'data-label="Transactions">3<' in row
    assert "0.875 gwei" in row
    assert f'data-age="{header.timestamp}"' in row
    parsed(page)


@pytest.mark.parametrize("before", ["0", "-1", "x", "9" * 19, "²", ""])
def test_a_page_that_cannot_be_there_is_not_found(chain, boss, before):
    response = boss.get(f"/explore/live/?before={before}")
    assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_network_without_blocks_says_so(boss):
    make_network("bare")
    page = text(boss.get("/explore/bare/"))
    assert "There are no blocks yet." in page
    parsed(page)


def test_only_the_page_of_a_network_makes_requests(chain, boss):
    (block,) = chain.grow()
    response = boss.get("/explore/live/")
    policy = response["Content-Security-Policy"]
    assert "script-src 'self'; connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert re.findall(r"<script src=\"([^\"]+)\"", text(response)) == [
        "/static/portcullis/live.js"
    ]
    other = boss.get(f"/explore/live/block/{hex_of(block)}")
    assert "connect-src" not in other["Content-Security-Policy"]
    assert re.findall(r"<script src=\"([^\"]+)\"", text(other)) == [
        "/static/portcullis/copy.js"
    ]


def test_an_unchanged_page_is_not_sent_again(chain, boss):
    chain.grow()
    first = boss.get("/explore/live/")
    tag = {"If-None-Match": first["ETag"]}
    assert f'data-version="{first["ETag"][1:-1]}"' in text(first)
    again = boss.get("/explore/live/", headers=tag)
    assert again.status_code == HTTPStatus.NOT_MODIFIED
    assert "script-src 'self'" in again["Content-Security-Policy"]
    chain.grow()
    assert listed(text(boss.get("/explore/live/", headers=tag))) == [2, 1, 0]
    tag = {"If-None-Match": boss.get("/explore/live/")["ETag"]}
    chain.finalize(safe=1, finalized=1)
    add_upstreams(chain.network)
    assert boss.get("/explore/live/", headers=tag).status_code == HTTPStatus.OK


def test_customers_see_the_networks_that_their_keys_may_trace(chain):
    customer = User.objects.create_user("customer@example.org", "a password")
    assert see(customer, "/explore/live/").status_code == HTTPStatus.NOT_FOUND
    issue_key(owner=customer, networks=[chain.network], may_trace=True)
    assert see(customer, "/explore/live/").status_code == HTTPStatus.OK
    assert Client().get("/explore/live/").status_code == HTTPStatus.FOUND


def test_home_and_explorer_lead_to_the_page(chain, boss):
    chain.grow()
    for path in ("/", "/explore/"):
        assert 'href="/explore/live/"' in text(boss.get(path))
    assert "/explore/live/" not in text(Client().get("/"))


def test_states_follow_the_tags(chain, boss):
    blocks = chain.grow(4)
    chain.finalize(safe=2, finalized=1)
    paths = [f"/explore/live/block/{hex_of(block)}" for block in blocks]
    add_upstreams(chain.network)
    assert [state(boss, path) for path in paths] == [
        *("finalized", "safe", "canonical", "latest")
    ]
    page = text(boss.get("/explore/live/"))
    shown = re.findall(r'data-label="State"><span class="badge (\w+)"', page)
    assert shown == ["latest", "canonical", "safe", "finalized", "finalized"]


def test_tags_are_unknown_until_an_upstream_reports_them(chain, boss):
    (block,) = chain.grow()
    path = f"/explore/live/block/{hex_of(block)}"
    assert state(boss, path) == "finalized"  # imported from a file
    add_upstreams(chain.network)
    assert state(boss, path) == "latest"
    assert "<dt>finalized</dt><dd>unknown</dd>" in text(boss.get("/explore/live/"))


def test_both_branches_of_a_reorganisation_are_shown(chain, boss):
    chain.grow(2)
    old = chain.reorganise()
    new = chain.builder.blocks[-ADDED:]
    page = text(boss.get("/explore/live/"))
    section = page.partition('<section id="reorganisations"')[2]
    assert f"{REPLACED} blocks after block 2 were replaced by {ADDED} others" in section
    rows = re.findall(r"<tr>.*?</tr>", section, re.DOTALL)[1:]
    assert [re.findall(r"block/(0x\w{64})", row) for row in rows] == [
        [hex_of(new[3])],
        *([hex_of(old[place]), hex_of(new[place])] for place in (2, 1, 0)),
    ]
    assert section.count(">orphaned<") == REPLACED
    parsed(page)


def test_of_a_deep_reorganisation_the_newest_blocks_are_shown(chain, boss):
    depth = MAX_BLOCKS + 2
    old = chain.reorganise(depth, depth + 1)
    section = text(boss.get("/explore/live/")).partition('id="reorganisations"')[2]
    assert len(re.findall(r"block/0x\w{64}", section)) == 2 * MAX_BLOCKS
    assert hex_of(old[-1]) in section
    assert hex_of(old[0]) not in section
    hidden = 2 * depth + 1 - 2 * MAX_BLOCKS
    assert f"{hidden} of these blocks are not shown" in section


def test_a_side_block_leads_to_the_canonical_block_of_its_height(chain, boss):
    chain.grow(2)
    old = chain.reorganise()
    canonical = chain.builder.blocks[2]
    path = f"/explore/live/block/{hex_of(old[0])}"
    assert state(boss, path) == "orphaned"
    assert f'href="/explore/live/block/{hex_of(canonical)}"' in text(boss.get(path))


def test_a_transaction_of_a_side_block_leads_to_its_canonical_block(chain, boss):
    chain.grow(2)
    old = chain.reorganise()
    canonical = chain.builder.blocks[2]
    shared = {one.hash for one in canonical.transactions}
    assert shared & {one.hash for one in old[0].transactions}
    for transaction in old[0].transactions:
        name = f"0x{transaction.hash.hex()}"
        page = text(boss.get(f"/explore/live/tx/{name}?block={hex_of(old[0])}"))
        assert ">orphaned<" in page
        if transaction.hash in shared:
            assert "It is also in the canonical" in page
            assert f'href="/explore/live/tx/{name}">block 3' in page
        elif not Block.objects.filter(
            transactions__hash=transaction.hash, is_canonical=True
        ).exists():
            assert "It is in no canonical block." in page


def test_the_page_is_found_in_indexes_among_many_rows(chain, boss):
    """PostgreSQL reads a page's rows from indexes, with a fixed number of queries."""
    chain.grow(3)
    network = chain.network
    columns = {
        field.column for field in Block._meta.concrete_fields if not field.primary_key
    }
    copied = ", ".join(sorted(columns - {"number", "hash", "parent_hash"}))
    with connection.cursor() as cursor:
        _add_blocks(cursor, copied, network)
        cursor.execute(
            "INSERT INTO nodeapi_reorganisation (network_id, at, fork_number, old_hash,"
            " new_hash, depth, added) SELECT %s, now() - n * interval '1 minute', n,"
            " sha256(('b' || n)::bytea), sha256(('b' || n + 1)::bytea), 1, 1"
            " FROM generate_series(1, 5000) AS n",
            [network.pk],
        )
        cursor.execute("ANALYZE nodeapi_block, nodeapi_reorganisation")
    with CaptureQueriesContext(connection) as queries:
        assert listed(text(boss.get("/explore/live/")))
    assert len(queries) < 20
    tables = ("nodeapi_block", "nodeapi_reorganisation")
    reads = [q["sql"] for q in queries if any(table in q["sql"] for table in tables)]
    assert len(reads) >= 4
    for sql in reads:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(row for (row,) in cursor.fetchall())
        for table in tables:
            assert f"Seq Scan on {table}" not in plan, plan
    assert Reorganisation.objects.count() == 5000


def _add_blocks(cursor, copied: str, network: Network) -> None:
    """Add 20,000 canonical blocks, copies of block 0 that are linked by their hashes."""
    values = ", ".join(f"b.{column}" for column in copied.split(", "))
    cursor.execute(
        f"INSERT INTO nodeapi_block (number, hash, parent_hash, {copied})"
        " SELECT n + 10, sha256(('b' || n)::bytea), sha256(('b' || n - 1)::bytea),"
        f" {values} FROM generate_series(1, 20000) AS n, nodeapi_block AS b"
        " WHERE b.network_id = %s AND b.number = 0",
        [network.pk],
    )
