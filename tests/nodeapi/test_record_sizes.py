from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from keys.models import User
from nodeapi.models import TransactionRecord
from nodeapi.status.facts import BLOCKS, RecordSizes, newest_record_sizes
from tests.support.records import Recorded, add_recorded_block
from tests.support.rows import make_network, set_head

pytestmark = pytest.mark.django_db


def test_sizes_are_those_of_the_newest_canonical_blocks() -> None:
    network = make_network()
    assert newest_record_sizes(network) == RecordSizes(0, 0, 0)
    add_recorded_block(network, "old", 1, [Recorded("a", output=b"0123" * 999)])
    add_recorded_block(network, "two", BLOCKS + 1, [])
    add_recorded_block(network, "side", BLOCKS, [Recorded("b")], is_canonical=False)
    newest = add_recorded_block(
        network, "newest", BLOCKS, [Recorded("c", data=bytes(90)), Recorded("d")]
    )
    add_recorded_block(
        make_network("beta"), "other", BLOCKS, [Recorded("e", data=bytes(90))]
    )
    set_head(network, "two", BLOCKS + 1)
    network.refresh_from_db()
    stored = sum(
        len(record.receipt)
        + len(record.calls)
        + len(record.prestate)
        + len(record.details)
        for record in TransactionRecord.objects.filter(block=newest)
    )
    sizes = newest_record_sizes(network)
    assert sizes == RecordSizes(2, 2, stored)
    assert str(sizes) == (
        f"{stored / 2:,.0f} bytes per transaction, {stored / 2:,.0f} bytes per block "
        "(newest 2 blocks)"
    )


def test_a_networks_page_shows_the_size_of_its_records(client: Client) -> None:
    network = make_network()
    add_recorded_block(network, "one", 1, [Recorded("a"), Recorded("b")])
    set_head(network, "one", 1)
    client.force_login(User.objects.create_superuser("staff@example.org", "x"))
    page = client.get(reverse("admin:networks_network_change", args=[network.pk]))
    network.refresh_from_db()
    assert str(newest_record_sizes(network)) in page.content.decode()
