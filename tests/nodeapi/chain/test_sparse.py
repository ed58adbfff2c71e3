"""The import of blocks on a sparse state gives the rows of an import on a complete one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from eth_typing import Address

from evm.blocks import decode_block, encode_block
from evm.errors import InvalidBlock
from evm.proof_nodes import ProofNodes
from evm.proved_state import ProvedValues
from evm.state_trie import address_key
from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.trie_at import trie_at
from nodeapi.follower.proving import MISSES
from nodeapi.proofs.values import head_anchor, insert_values
from tests.support import chains, copies, sample
from tests.support.full_node import FullNode
from tests.support.simulator import forged
from tests.support.sparse import forget_state, sparse_importer
from tests.support.state_node import Batches, LocalClient
from tests.support.waiting import wait_until

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


def test_values_that_two_processes_store_at_once_are_no_deadlock() -> None:
    copies.once("full and sparse", two_networks)
    network_id = Network.objects.get(slug="sparse").pk
    low, high = (Address(bytes(19) + bytes([n])) for n in (0x77, 0x78))
    with importer_connection() as one, importer_connection() as other:
        anchor = head_anchor(one, network_id)

        def store(connection: Any, *addresses: Address) -> None:
            values = ProvedValues(dict.fromkeys(addresses))
            insert_values(connection, network_id, anchor, values)

        with ThreadPoolExecutor(1) as thread, one.transaction():
            store(one, low)
            stored = thread.submit(store, other, high, low)
            waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
            wait_until(lambda: one.execute(waiting).fetchone())
            store(one, high)
        stored.result()


def test_accounts_with_the_same_storage_have_nodes_each() -> None:
    storage = {"0x01": "0x02", "0x03": "0x04"}
    twins = [Address(bytes([n]) * 20) for n in (0xA1, 0xA2)]
    account = {"balance": "0x0", "nonce": "0x1", "code": "0x00", "storage": storage}
    genesis = dict(sample.genesis())
    genesis["alloc"] = genesis["alloc"] | {each.hex(): account for each in twins}
    chains.import_blocks("twins", genesis, [])
    network_id = Network.objects.get(slug="twins").pk
    with importer_connection() as connection:
        (root,) = connection.execute(
            "SELECT state_root FROM nodeapi_block WHERE network_id = %s", (network_id,)
        ).fetchone() or (b"",)
        tries = trie_at(
            connection, network_id, head_anchor(connection, network_id).hash
        )
        nodes = ProofNodes(
            node
            for proofs in (
                tries.prove_accounts(twins),
                tries.prove_slots(twins[0], [1, 3]),
            )
            for proof in proofs
            for node in proof.nodes
        )
    rows = nodes.rows(root)
    first, second = (rows[address_key(each)] for each in twins)
    assert first == second
    assert len(first) == 3
