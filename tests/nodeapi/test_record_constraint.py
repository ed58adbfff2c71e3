"""The database rejects a transaction without record, and a record without transaction."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from networks.models import Network
from nodeapi.models import Block, Transaction, TransactionRecord
from tests.support.records import Recorded, add_recorded_block
from tests.support.rows import hash_of, make_network

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def block() -> Block:
    """A block with two transactions."""
    return add_recorded_block(make_network(), "one", 1, [Recorded("a"), Recorded("b")])


def test_a_block_needs_a_record_for_each_transaction(block: Block) -> None:
    with pytest.raises(IntegrityError, match="has 3 transactions, and records of 2"):
        Block.objects.filter(pk=block.pk).update(transaction_count=3)
    copy = Block.objects.get(pk=block.pk)
    copy.pk, copy.hash = None, hash_of("copy")
    copy.is_canonical = False
    with pytest.raises(IntegrityError, match="has 2 transactions, and records of 0"):
        copy.save()


def test_a_record_does_not_leave_its_transaction(block: Block) -> None:
    of_block = TransactionRecord.objects.filter(block=block)
    with pytest.raises(IntegrityError, match="has 2 transactions, and records of 1"):
        of_block.filter(index=1).delete()
    other = add_recorded_block(
        block.network, "other", 1, [Recorded("c")], is_canonical=False
    )
    with pytest.raises(IntegrityError, match="has no transaction 1"):
        of_block.filter(index=1).update(block_id=other.pk)
    assert of_block.count() == 2


def test_there_is_no_record_of_no_transaction(block: Block) -> None:
    record = TransactionRecord.objects.get(block=block, index=1)
    for place in ((block.pk, 2), (block.pk + 1, 0)):
        record.block_id, record.index = place
        with pytest.raises(IntegrityError, match="has no transaction"):
            record.save(force_insert=True)
    record.block_id, record.index = block.pk, -1
    with pytest.raises(IntegrityError, match="record_sizes"):
        record.save(force_insert=True)


def test_within_a_transaction_they_may_come_one_after_the_other(block: Block) -> None:
    with transaction.atomic():
        record = TransactionRecord.objects.get(block=block, index=1)
        TransactionRecord.objects.filter(block=block, index=1).delete()
        record.save(force_insert=True)
    assert TransactionRecord.objects.filter(block=block).count() == 2


def test_a_block_goes_with_its_records(block: Block) -> None:
    Network.objects.filter(pk=block.network_id).delete()
    for model in (Block, Transaction, TransactionRecord):
        assert not model.objects.exists()
