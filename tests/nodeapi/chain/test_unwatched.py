"""An import without trace records stores the same blocks and state."""

from __future__ import annotations

import pytest

from evm.blocks import decode_block
from nodeapi.chain.database import importer_connection
from nodeapi.errors.traces import TraceTooLarge
from tests.support import chains, sample
from tests.support.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)


def test_watching_changes_no_row_but_the_records() -> None:
    genesis, blocks = sample.genesis(), sample.raw_blocks()
    chains.import_blocks("unwatched", genesis, blocks, record_limit_bytes=None)
    codes = chains.codes()
    chains.import_blocks("watched", genesis, blocks)
    watched, unwatched = chains.rows("watched"), chains.rows("unwatched")
    # Blocks with all roots, documents, receipts, state versions and trie nodes.
    assert watched.pop("records") != unwatched.pop("records")
    # Appearances are derived from records. Transactions without one are marked.
    assert watched.pop("appearances") != unwatched.pop("appearances")
    assert watched == unwatched
    assert chains.codes() == codes
    assert chains.audit_all("unwatched") == len(blocks) + 1

    # A trace without a record is refused.
    first = next(block for block in map(decode_block, blocks) if block.transactions)
    with importer_connection() as connection:
        network_id = chains.network_id(connection, "unwatched")
    with serving() as running, pytest.raises(TraceTooLarge):
        running.ask(
            running.service.store.block_trace, network_id, first.header.hash, "calls"
        )
