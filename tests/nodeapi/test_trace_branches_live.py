"""Traces of two branches during reorganisations between them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from evm.blocks import Block
from evm.hexadecimal import to_hex
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Api, live_service
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ALICE, BOB = Signer("alice"), Signer("bob")
TRACERS: list[dict[str, Any]] = [
    {"tracer": "callTracer"},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {"tracer": "flatCallTracer"},
    {},
]


def genesis() -> dict[str, Any]:
    return fork_genesis("shanghai", ALICE, BOB)


def calls(blocks: list[Block]) -> list[tuple[Any, ...]]:
    """Return calls whose answers no reorganisation may change."""
    return [
        ("debug_traceBlockByHash", to_hex(block.header.hash), options)
        for block in blocks
        for options in TRACERS
    ]


def hashes(block: Block) -> list[str]:
    return [to_hex(transaction.hash) for transaction in block.transactions]


def check_canonical(api: Api, canonical: list[Block], side: list[Block]) -> None:
    """Compare results by number and by transaction with the canonical branch."""
    for block in canonical:
        number, name = hex(block.header.number), to_hex(block.header.hash)
        for options in TRACERS:
            entries = api.result("debug_traceBlockByNumber", number, options)
            assert entries == api.result("debug_traceBlockByHash", name, options)
            assert [entry["txHash"] for entry in entries] == hashes(block)
            for entry in entries:
                alone = api.result("debug_traceTransaction", entry["txHash"], options)
                assert alone == entry["result"]
        for trace in api.result("trace_block", number):
            assert trace["blockHash"] == name
    standing = {name for block in canonical for name in hashes(block)}
    for block in side:
        for name in set(hashes(block)) - standing:
            told = (-32000, "transaction not found")
            for options in TRACERS:
                assert api.error("debug_traceTransaction", name, options) == told
            assert api.result("trace_transaction", name) is None


def await_head(api: Api, head: Block) -> None:
    """Wait until a worker has received the event of a new head."""
    name = to_hex(head.header.hash)
    latest = ("eth_getBlockByNumber", "latest", False)
    wait_until(lambda: api.result(*latest)["hash"] == name)


class Watcher(threading.Thread):
    """Repeatedly makes calls whose results must not change."""

    def __init__(self, api: Api, calls: list[tuple[Any, ...]]) -> None:
        super().__init__(daemon=True)
        self._api, self._calls = api, calls
        self.expected = api.results(calls)
        self.error: BaseException | None = None
        self.rounds = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                assert self._api.results(self._calls) == self.expected
                self.rounds += 1
        except BaseException as error:
            self.error = error

    def finish(self) -> None:
        self.stopped.set()
        self.join()
        if self.error is not None:
            raise self.error
        assert self.rounds


def grow(chain: ChainBuilder, slots: bytes, branch: int, count: int) -> list[Block]:
    """Add blocks with a call that is in both branches, and with different transfers."""
    for _ in range(count):
        chain.send(ALICE, slots)
        for _ in range(branch):
            chain.send(BOB, Signer(f"{branch}").address, value=branch)
        chain.block(extra_data=bytes([branch]))
    return chain.blocks[-count:]


def test_traces_belong_to_their_block_whatever_is_canonical() -> None:
    start = genesis()
    trunk = ChainBuilder(start)
    slots = trunk.deploy(ALICE, contract("slots").init_code())
    trunk.block()
    left, right = trunk.fork(), trunk.fork()
    first = grow(left, slots, 1, 3)
    second = grow(right, slots, 2, 4)
    third = grow(left, slots, 1, 2)
    chains.import_blocks("net", start, [*trunk.blocks, *first])
    chains.import_blocks("net", start, second[:3])
    with live_service(workers=2) as live:
        key = live.new_key(may_trace=True)
        with live.each_worker("net", key) as apis:
            by_hash = calls([*first, *second[:3]])
            watchers = [Watcher(api, by_hash) for api in apis]
            assert watchers[0].expected == watchers[1].expected
            for api in apis:
                check_canonical(api, first, second[:3])
            # Traces that execute a block. A key may have two at a time.
            watchers[0].start()
            chains.import_blocks("net", start, second[3:])
            await_head(apis[1], second[-1])
            check_canonical(apis[1], second, first)
            chains.import_blocks("net", start, third)
            for api in apis:
                await_head(api, third[-1])
            check_canonical(apis[1], [*first, *third], second)
            watchers[0].finish()
            for api in apis:
                assert api.results(by_hash) == watchers[0].expected
                check_canonical(api, [*first, *third], second)
