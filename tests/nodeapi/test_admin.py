"""The list of blocks remains fast with millions of blocks."""

from __future__ import annotations

from copy import copy

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from keys.models import User
from nodeapi.models import Block
from tests.support.rows import add_block, hash_of, make_network

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def shown(staff: Client, **query: object) -> tuple[list[bytes], list[str]]:
    """Return the blocks of a list in order, and the SQL that has found them."""
    with CaptureQueriesContext(connection) as queries:
        answer = staff.get("/admin/nodeapi/block/", query)
    assert answer.status_code == 200
    blocks = [bytes(block.hash) for block in answer.context["cl"].result_list]
    return blocks, [q["sql"] for q in queries if 'FROM "nodeapi_block"' in q["sql"]]


def test_blocks_are_found_in_indexes_and_not_counted(staff: Client) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    add_block(alpha, "late", 7)
    add_block(beta, "other", 7)
    add_block(alpha, "early", 3)
    everything, sql = shown(staff)
    assert everything == [hash_of(name) for name in ("early", "other", "late")]
    assert not any("COUNT(" in one for one in sql)
    by_number, sql = shown(staff, network__id__exact=alpha.pk)
    assert by_number == [hash_of("late"), hash_of("early")]
    assert not any("COUNT(" in one for one in sql)
    for search in ("7", hash_of("other").hex()):
        found, sql = shown(staff, q=search)
        assert hash_of("other") in found
        # The indexes of numbers and hashes begin with the network.
        assert '"nodeapi_block"."network_id" IN (' in sql[0]
        assert not any("COUNT(" in one for one in sql)


def test_blocks_that_are_not_canonical_have_an_index_of_their_own(
    staff: Client,
) -> None:
    network = make_network("alpha")
    canonical = add_block(network, "0", 0)
    blocks = []
    for number in range(1, 2000):
        canonical.pk, canonical.number = None, number
        canonical.hash = hash_of(str(number))
        blocks.append(copy(canonical))
    Block.objects.bulk_create(blocks)
    add_block(network, "later", 9, is_canonical=False)
    add_block(network, "side", 8, is_canonical=False)
    found = {"is_canonical__exact": "0"}
    for chosen, names in (
        (found, ["side", "later"]),
        ({**found, "network__id__exact": network.pk}, ["later", "side"]),
    ):
        listed, sql = shown(staff, **chosen)
        assert listed == [hash_of(name) for name in names]
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE nodeapi_block")
            cursor.execute(f"EXPLAIN {sql[0]}")
            plan = "\n".join(row for (row,) in cursor.fetchall())
        assert "block_side" in plan


def test_no_column_of_the_list_offers_to_sort_all_blocks(staff: Client) -> None:
    add_block(make_network("alpha"), "only", 7)
    page = staff.get("/admin/nodeapi/block/").content.decode()
    assert "?o=" not in page
    assert hash_of("only")[:6].hex() in page
