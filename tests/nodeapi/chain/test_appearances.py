"""The index of appearances is complete, and does not depend on the way of its writing."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from networks.models import Network
from nodeapi.chain.appearances import AppearanceRows
from nodeapi.chain.database import importer_connection
from nodeapi.models import Appearance, AppearanceBackfill
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.support import chains, copies

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = Signer("alice")
HEAD = 40


def forget(below: int) -> None:
    """Remove the rows of old blocks, as if a version without the index stored them."""
    network = Network.objects.get(slug="sample")
    Appearance.objects.filter(network=network, block_number__lt=below).delete()
    AppearanceBackfill.objects.create(network=network, missing_below=below)


@pytest.fixture
def rows() -> str:
    """Import blocks, and return the digest of their rows."""
    copies.sample_chain(blocks=HEAD)
    return chains.rows("sample")["appearances"]


def test_missing_rows_are_backfilled(rows: str) -> None:
    forget(HEAD + 1)
    assert chains.rows("sample")["appearances"] != rows
    call_command("backfill_appearances")
    assert chains.rows("sample")["appearances"] == rows
    assert not AppearanceBackfill.objects.exists()


def test_backfill_continues_where_it_was_stopped(rows: str) -> None:
    forget(30)
    network_id = Network.objects.get(slug="sample").pk
    with importer_connection() as importing:
        index = AppearanceRows(importing, network_id)
        assert index.backfill(most=7) == 23
    assert AppearanceBackfill.objects.get().missing_below == 23
    call_command("backfill_appearances", network="sample")
    assert chains.rows("sample")["appearances"] == rows


def test_blocks_above_a_rewind_are_not_missing_any_more(rows: str) -> None:
    forget(30)
    network_id = Network.objects.get(slug="sample").pk
    with importer_connection() as importing:
        AppearanceRows(importing, network_id).remove_above(19)
    assert AppearanceBackfill.objects.get().missing_below == 20
    assert not Appearance.objects.filter(block_number__gte=20).exists()


def test_created_contracts_are_marked_unless_their_creation_was_undone() -> None:
    start = make_genesis(
        chain_id=7,
        first_blocks=from_genesis("shanghai"),
        alloc={f"0x{ALICE.address.hex()}": {"balance": hex(10**21)}},
    )
    chain = ChainBuilder(start)
    created = chain.deploy(ALICE, contract("slots").init_code())
    failed = chain.deploy(ALICE, b"\xfe")
    chain.block()
    chains.import_blocks("sample", start, chain.blocks)
    creations = Appearance.objects.filter(is_creation=True)
    assert [bytes(row.address) for row in creations] == [created]
    assert not Appearance.objects.filter(address=failed).exists()
