"""A node that follows a full Portcullis from a checkpoint answers as the full one does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from networks.services import Checkpoint, add_upstream
from tests.nodeapi.follower.net import SLUG, Net
from tests.support import chains, copies
from tests.support.live import Api, live_service, request
from tests.support.sparse import READER, WRITER, Load, kept_garbage_collector

LOAD = Load()
CHECKPOINT, HEAD = 260, 280


@dataclass
class Edge:
    """Both networks, each as a customer calls it."""

    full: Api
    sparse: Api

    def compare(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Require equal responses to calls, and return them."""
        found, wanted = self.sparse.batch(calls), self.full.batch(calls)
        for call, one, other in zip(calls, found, wanted, strict=True):
            if call[0] == "eth_getBlockByNumber":
                # It is unknown: only those of public networks are built in.
                del other["result"]["totalDifficulty"]
            assert one == other, call
        return found


def import_full() -> None:
    chain = LOAD.grow(LOAD.chain(), 240, seed=0, transactions=0)
    LOAD.grow(chain, HEAD - 240, seed=5)
    chains.import_blocks("full", LOAD.genesis, chain.blocks)


@pytest.fixture(scope="module")
def edge(module_db: None) -> Iterator[Edge]:
    copies.once("full to follow", import_full)
    with live_service() as live:
        key = live.new_key(may_trace=True)
        with live.api("full", key=key) as api:
            block = api.result("eth_getBlockByNumber", hex(CHECKPOINT), False)
            checkpoint = Checkpoint(CHECKPOINT, bytes.fromhex(block["hash"][2:]), 256)
            net = Net(genesis=LOAD.genesis, checkpoint=checkpoint)
            add_upstream(network=net.row(), url=f"{live.base_url}/full/v3/{key}")
            with kept_garbage_collector(), net.followed():
                net.wait(lambda: net.head() == chains.head("full"), net.head)
                with live.api(SLUG, key=live.new_key(may_trace=True)) as sparse:
                    net.wait(lambda: sparse.send(request("eth_gasPrice")).is_success)
                    yield Edge(api, sparse)


def test_blocks_and_traces(edge: Edge) -> None:
    for number in range(CHECKPOINT + 1, HEAD + 1):
        edge.compare(
            ("eth_getBlockByNumber", hex(number), True),
            ("eth_getBlockReceipts", hex(number)),
            ("debug_traceBlockByNumber", hex(number), {"tracer": "callTracer"}),
            ("debug_traceBlockByNumber", hex(number), {"tracer": "prestateTracer"}),
        )


def test_random_reads(edge: Edge) -> None:
    chance = random.Random(7)
    addresses = [f"0x{each.hex()}" for each in LOAD.addresses]
    calls: list[tuple[Any, ...]] = []
    for _ in range(150):
        block = chance.choice(["latest", hex(chance.randint(CHECKPOINT, HEAD))])
        address = chance.choice([*addresses, f"0x{chance.randbytes(20).hex()}"])
        slot = hex(
            chance.choice([chance.randrange(2 * LOAD.slots), chance.getrandbits(256)])
        )
        calls += [
            ("eth_getStorageAt", f"0x{WRITER.hex()}", slot, block),
            ("eth_getStorageAt", address, slot, block),
            ("eth_getBalance", address, block),
            ("eth_getTransactionCount", address, block),
            ("eth_getCode", chance.choice([address, f"0x{READER.hex()}"]), block),
        ]
    for start in range(0, len(calls), 50):
        edge.compare(*calls[start : start + 50])


def test_calls_of_unknown_values(edge: Edge) -> None:
    chance = random.Random(8)
    for number in (CHECKPOINT, CHECKPOINT + 7, HEAD):
        data = f"0x{LOAD.asked(chance).hex()}"
        call = {"to": f"0x{READER.hex()}", "data": data}
        edge.compare(
            ("eth_call", call, hex(number)),
            ("eth_estimateGas", call, hex(number)),
            ("debug_traceCall", call, hex(number), {"tracer": "callTracer"}),
        )
