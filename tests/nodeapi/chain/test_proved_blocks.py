"""Blocks that are proved, not executed, have the rows of executed ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evm.blocks import decode_block, encode_block
from networks.models import Network
from networks.services import Checkpoint
from nodeapi.chain import proved_blocks
from nodeapi.chain.branches import Branches
from nodeapi.chain.database import importer_connection
from nodeapi.chain.forkchoice import BelowFinalized, Forkchoice
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.proved_blocks import ProvedBlocks
from nodeapi.chain.proved_traces import AncestorHashes, UnknownAncestor
from tests.support import chains, copies, sample
from tests.support.proved import proved_blocks_of, start_at_checkpoint

pytestmark = pytest.mark.django_db(transaction=True)

SAME = ("blocks", "transactions", "receipts", "logs", "head")


def test_proved_blocks_have_the_rows_of_executed_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies.sample_chain("full")
    full = Network.objects.get(slug="full")
    blocks = proved_blocks_of("full")
    checkpoint = blocks[0].block.header
    total = sum(each.block.header.difficulty for each in blocks) + 0x20000
    monkeypatch.setattr(proved_blocks, "final_total_difficulty", lambda _: total)
    with importer_connection() as opened:
        network_id = open_network(
            opened,
            "proved",
            genesis=sample.genesis(),
            checkpoint=Checkpoint(checkpoint.number, checkpoint.hash),
        )
        proved = ProvedBlocks(opened, network_id, stored_config(network_id))
        assert proved.gap().newest == (checkpoint.number, checkpoint.hash)
        with pytest.raises(ValueError, match="not the next"):
            proved.store(blocks[1:3])
        proved.store(blocks[:40])
        with pytest.raises(LookupError, match="block 1 is not stored"):
            proved.start()
        # Another process continues where the first one was.
        proved = ProvedBlocks(opened, network_id, stored_config(network_id))
        assert proved.oldest() == checkpoint.number - 39
        proved.store(blocks[40:])
        assert not proved.is_started
        proved.start()
        assert proved.is_started
    found, wanted = chains.rows("proved"), chains.rows("full")
    assert {name: found[name] for name in SAME} == {name: wanted[name] for name in SAME}
    for name in ("accounts", "slots", "nodes", "appearances"):
        assert found[name].startswith("0 rows")
    row = Network.objects.get(slug="proved")
    assert bytes(row.finalized_hash or b"") == full.head_hash == row.safe_hash
    assert not row.emit_total_difficulty


def test_no_branch_leaves_the_chain_below_the_checkpoint() -> None:
    copies.sample_chain("full")
    start_at_checkpoint("proved", "full", sample.genesis(), 78, oldest=40)
    parent, block = (decode_block(sample.raw_blocks()[at - 1]) for at in (76, 77))
    with chains.following_importer("proved", None) as importer:
        with pytest.raises(BelowFinalized, match="78"):
            importer.follow(Forkchoice(parent.header.hash, None, None))
        sibling = replace(block, header=replace(block.header, extra_data=b"x"))
        with pytest.raises(BelowFinalized, match="78"):
            importer.add(encode_block(sibling))


def test_an_unknown_ancestor_is_never_read_as_the_end_of_the_chain() -> None:
    raw = sample.raw_blocks()[:80]
    copies.sample_chain("full")
    start_at_checkpoint("proved", "full", sample.genesis(), 78, oldest=40)
    line = [decode_block(each).header for each in raw[77::-1]]
    with importer_connection() as opened:
        branches = Branches(opened, Network.objects.get(slug="proved").pk)
        found = AncestorHashes(branches, line[0], {})
        known = []
        with pytest.raises(UnknownAncestor, match="not stored"):
            for each in found:
                known.append(each)
        # Headers of a witness continue the stored ones, down to block 0.
        headers = {each.hash: each for each in line}
        whole = list(AncestorHashes(branches, line[0], headers))
    assert whole == [each.parent_hash for each in line]
    assert known == whole[:39]
