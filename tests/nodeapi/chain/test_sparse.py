"""The import of blocks on a sparse state gives the rows of an import on a complete one."""

from __future__ import annotations

import pytest

from evm.blocks import decode_block, encode_block
from evm.errors import InvalidBlock
from nodeapi.chain.database import importer_connection
from tests.support import chains, copies, sample
from tests.support.full_node import FullNode
from tests.support.simulator import forged
from tests.support.sparse import forget_state, sparse_importer
from tests.support.state_node import Batches

pytestmark = pytest.mark.django_db(transaction=True)

CHECKPOINT = 68
"""A block of Cancun. The chain goes on to Amsterdam."""


def two_networks() -> None:
    """Import the sample chain, and another time up to the checkpoint."""
    chains.import_blocks("full", sample.genesis(), sample.raw_blocks())
    chains.import_blocks("sparse", sample.genesis(), sample.raw_blocks()[:CHECKPOINT])
    forget_state("sparse")


@pytest.mark.parametrize(
    "lacks",
    [
        (),
        ("debug_executionWitness",),
        ("debug_executionWitness", "debug_traceBlockByHash"),
    ],
    ids=lambda each: ",".join(each) or "nothing",
)
def test_blocks_change_what_they_change_on_a_complete_state(
    lacks: tuple[str, ...],
) -> None:
    copies.once("full and sparse", two_networks)
    with (
        importer_connection() as connection,
        sparse_importer(
            "sparse", FullNode(connection, "full").methods, lacks
        ) as importer,
    ):
        for raw in sample.raw_blocks()[CHECKPOINT:]:
            importer.add(raw)
    assert chains.head("sparse") == chains.head("full")
    wanted = chains.state_rows("full", CHECKPOINT)
    assert chains.state_rows("sparse", CHECKPOINT) == wanted


def test_a_trace_leaves_one_request_for_the_proofs_of_a_block() -> None:
    copies.once("full and sparse", two_networks)
    batches: Batches = []
    with (
        importer_connection() as connection,
        sparse_importer(
            "sparse",
            FullNode(connection, "full").methods,
            ("debug_executionWitness",),
            batches,
        ) as importer,
    ):
        for raw in sample.raw_blocks()[CHECKPOINT:]:
            batches.clear()
            importer.add(raw)
            requests = [calls[0][0] for calls in batches].count("eth_getProof")
            assert requests == 1, decode_block(raw).header.number


def test_nothing_is_asked_for_a_block_whose_header_breaks_a_rule() -> None:
    copies.once("full and sparse", two_networks)
    batches: Batches = []
    block = decode_block(sample.raw_blocks()[CHECKPOINT])
    false = forged(block, gas_used=block.header.gas_limit + 1)
    with (
        importer_connection() as connection,
        sparse_importer(
            "sparse", FullNode(connection, "full").methods, batches=batches
        ) as importer,
        pytest.raises(InvalidBlock, match="gas used"),
    ):
        importer.add(encode_block(false))
    assert batches == []
