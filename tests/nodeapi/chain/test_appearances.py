"""The index of appearances is complete, and does not depend on the way of its writing."""

from __future__ import annotations

import pytest

from networks.models import Network
from nodeapi.chain.appearances import AppearanceRows
from nodeapi.chain.database import importer_connection
from nodeapi.models import Appearance, Block
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains, copies

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = Signer("alice")


def test_rows_of_stored_blocks_equal_those_of_new_ones() -> None:
    copies.sample_chain(blocks=40)
    rows = chains.rows("sample")["appearances"]
    network = Network.objects.get(slug="sample")
    blocks = Block.objects.filter(network=network, is_canonical=True)
    with importer_connection() as importing:
        index = AppearanceRows(importing, network.pk)
        index.remove_above(19)
        assert not Appearance.objects.filter(block_number__gte=20).exists()
        ids = blocks.filter(number__gte=20).order_by("-number")
        index.insert_stored(list(ids.values_list("id", flat=True)))
    assert chains.rows("sample")["appearances"] == rows


def test_created_contracts_are_marked_unless_their_creation_was_undone() -> None:
    start = fork_genesis("shanghai", ALICE)
    chain = ChainBuilder(start)
    created = chain.deploy(ALICE, contract("slots").init_code())
    failed = chain.deploy(ALICE, b"\xfe")
    chain.block()
    chains.import_blocks("sample", start, chain.blocks)
    creations = Appearance.objects.filter(is_creation=True)
    assert [bytes(row.address) for row in creations] == [created]
    assert not Appearance.objects.filter(address=failed).exists()
