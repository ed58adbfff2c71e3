"""The import of blocks on a sparse state gives the rows of an import on a complete one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evm.blocks import decode_block, encode_block
from evm.errors import InvalidBlock
from nodeapi.chain.database import importer_connection
from nodeapi.follower.proving import MISSES
from tests.support import chains, copies, sample
from tests.support.full_node import FullNode
from tests.support.simulator import forged
from tests.support.sparse import forget_state, sparse_importer
from tests.support.state_node import Batches, LocalClient

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


def only(parts: list[Any]) -> Any:
    """Return a witness with some of the nodes alone."""
    return {"state": parts, "codes": [], "headers": []}


def senders_of(traces: list[Any]) -> Any:
    """Return traces that name the account with the highest nonce in each alone."""

    def nonce(item: tuple[str, Any]) -> int:
        return int(item[1].get("nonce", 0))

    return [{"result": dict([max(t["result"].items(), key=nonce)])} for t in traces]


def with_more(traces: list[Any]) -> Any:
    """Return traces that name many accounts that are not accessed."""
    more = {f"0x{number:040x}": {} for number in range(600)}
    return [*traces, {"result": more}]


@pytest.mark.parametrize(
    ("method", "change", "most"),
    [
        ("debug_executionWitness", lambda _: only([]), 1),
        ("debug_executionWitness", lambda it: only(it["state"][:1]), MISSES + 2),
        ("debug_traceBlockByHash", lambda _: [], 1),
        ("debug_traceBlockByHash", senders_of, MISSES + 4),
        ("debug_traceBlockByHash", with_more, 14),
    ],
    ids=["no witness", "a part", "no trace", "senders", "more"],
)
def test_an_upstream_that_names_something_else_is_not_asked_again(
    method: str, change: Callable[[Any], Any], most: int
) -> None:
    copies.once("full and sparse", two_networks)
    batches: Batches = []
    with importer_connection() as connection:
        methods = FullNode(connection, "full").methods
        if method != "debug_executionWitness":
            del methods["debug_executionWitness"]
        liar = LocalClient(
            methods, lambda name, it: change(it) if name == method else it
        )
        liar.batches = batches
        with sparse_importer("sparse", methods, (), batches, [liar]) as importer:
            for raw in sample.raw_blocks()[CHECKPOINT:]:
                asked = len(batches)
                importer.add(raw)
                names = [calls[0][0] for calls in batches[asked:]]
                assert names.count("eth_getProof") <= most
                if not liar.offers(method):
                    return
    raise AssertionError("it is asked again")
