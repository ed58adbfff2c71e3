"""Two branches of a chain, served by two processes, during reorganisations."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import connections

from abi.encoding import call_data
from evm.blocks import Block, encode_block
from evm.hexadecimal import to_hex
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Api, Live, live_service
from tests.support.waiting import wait_until

ALICE, BOB = Signer("alice"), Signer("bob")
GENESIS = fork_genesis("shanghai", ALICE, BOB)
NOT_CANONICAL = (-32000, "hash is not currently canonical")
TRACERS: list[dict[str, Any]] = [
    {"tracer": "callTracer"},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {"tracer": "flatCallTracer"},
    {},
]


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Return a server of two processes. Each test has a network of its own."""
    with live_service(workers=2) as live:
        yield live


class Tree:
    """Branches of a chain. Each block writes to the same contract.

    Slot 0 holds the branch, slot 1 the block's number.
    """

    def __init__(self) -> None:
        self.trunk = ChainBuilder(GENESIS)
        self.slots = self.trunk.deploy(ALICE, contract("slots").init_code())
        self.trunk.block()
        self.branches: dict[bytes, int] = {}

    def grow(self, chain: ChainBuilder, branch: int, count: int) -> list[Block]:
        """Add blocks to a branch, each with other transactions than its siblings."""
        for _ in range(count):
            number = chain.head.number + 1
            for slot, value in ((0, branch), (1, number)):
                data = call_data("set(uint256,uint256)", slot, value)
                chain.send(ALICE, self.slots, data)
            for _ in range(branch - 4):
                chain.send(BOB, Signer(f"{branch}").address, value=branch)
            block = chain.block(extra_data=bytes([branch]))
            self.branches[block.header.hash] = branch
        return chain.blocks[-count:]

    def calls(self, blocks: Sequence[Block]) -> list[tuple[Any, ...]]:
        """Return calls whose results do not change in a reorganisation."""
        calls: list[tuple[Any, ...]] = []
        for block in blocks:
            name = text(block)
            calls += [("eth_getBlockByHash", name, flag) for flag in (True, False)]
            calls += [
                ("eth_getTransactionByBlockHashAndIndex", name, hex(index))
                for index in range(len(block.transactions) + 1)
            ]
            for where in (
                name,
                {"blockHash": name},
                {"blockHash": name, "requireCanonical": False},
            ):
                calls += [self.storage(slot, where) for slot in (0, 1)]
            positions = {to_hex(self.slots): [word(0), word(1)]}
            calls.append(("eth_getStorageValues", positions, {"blockHash": name}))
        return calls

    def storage(self, slot: int, where: Any) -> tuple[Any, ...]:
        return "eth_getStorageAt", to_hex(self.slots), hex(slot), where


def text(block: Block) -> str:
    return to_hex(block.header.hash)


def hashes(block: Block) -> list[str]:
    return [to_hex(transaction.hash) for transaction in block.transactions]


def word(value: int) -> str:
    return f"0x{value:064x}"


def check_branch(tree: Tree, api: Api, blocks: Sequence[Block]) -> None:
    """Compare results by block hash with the built blocks."""
    for block in blocks:
        name, number = text(block), hex(block.header.number)
        full = api.result("eth_getBlockByHash", name, True)
        assert (full["hash"], full["number"]) == (name, number)
        assert [each["hash"] for each in full["transactions"]] == hashes(block)
        for index in range(len(block.transactions)):
            method = "eth_getTransactionByBlockHashAndIndex"
            found = api.result(method, name, hex(index))
            assert found == full["transactions"][index]
            assert (found["blockHash"], found["blockNumber"]) == (name, number)
        branch = tree.branches[block.header.hash]
        for slot, value in ((0, branch), (1, block.header.number)):
            assert api.result(*tree.storage(slot, name)) == word(value)


def check_canonical(
    tree: Tree, api: Api, canonical: Sequence[Block], side: Sequence[Block]
) -> None:
    """Compare results that depend on the head with the canonical branch."""
    head = canonical[-1]
    assert api.result("eth_blockNumber") == hex(head.header.number)
    for tag in ("latest", "pending", "safe", "finalized"):
        found = api.result("eth_getBlockByNumber", tag, False)
        assert found["hash"] == text(head)
    for block in canonical:
        number, name = hex(block.header.number), text(block)
        assert api.result("eth_getBlockByNumber", number, False)["hash"] == name
        branch = word(tree.branches[block.header.hash])
        where = {"blockHash": name, "requireCanonical": True}
        for reference in (number, {"blockNumber": number}, where):
            assert api.result(*tree.storage(0, reference)) == branch
    for block in side:
        where = {"blockHash": text(block), "requireCanonical": True}
        assert api.error(*tree.storage(0, where)) == NOT_CANONICAL
        positions = {to_hex(tree.slots): [word(0)]}
        assert api.error("eth_getStorageValues", positions, where) == NOT_CANONICAL


def check_traces(api: Api, canonical: list[Block], side: list[Block]) -> None:
    """Compare traces by number and by transaction with the canonical branch."""
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


def check_place(api: Api, block: Block, index: int) -> None:
    """Check the position of a transaction and of its receipt."""
    name = to_hex(block.transactions[index].hash)
    transaction = api.result("eth_getTransactionByHash", name)
    receipt = api.result("eth_getTransactionReceipt", name)
    for found in (transaction, receipt):
        assert found["blockHash"] == text(block)
        assert found["blockNumber"] == hex(block.header.number)
        assert found["transactionIndex"] == hex(index)
    assert transaction["hash"] == receipt["transactionHash"] == name
    receipts = api.result("eth_getBlockReceipts", text(block))
    assert receipts[index] == receipt


def follow(api: Api, slug: str, blocks: Sequence[Block]) -> None:
    """Import blocks in another process, and wait until a worker has the last one."""
    chains.import_blocks(slug, GENESIS, blocks)
    latest = ("eth_getBlockByNumber", "latest", False)
    wait_until(lambda: api.result(*latest)["hash"] == text(blocks[-1]))


class Watcher(threading.Thread):
    """Makes calls to one worker continuously. Records wrong results and new heads."""

    def __init__(self, api: Api, calls: list[tuple[Any, ...]]) -> None:
        super().__init__(daemon=True)
        self._api = api
        self._calls = calls
        self.expected = api.results(calls)
        self.heads: list[str] = []
        self.error: BaseException | None = None
        self.stopped = threading.Event()

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                head = self._api.result("eth_getBlockByNumber", "latest", False)
                if self.heads[-1:] != [head["hash"]]:
                    self.heads.append(head["hash"])
                assert self._api.results(self._calls) == self.expected
        except BaseException as error:
            self.error = error

    def finish(self, head: str) -> None:
        """Wait until a head has been seen."""
        wait_until(lambda: self.error is not None or self.heads[-1:] == [head])
        self.stopped.set()
        self.join()
        if self.error is not None:
            raise self.error


def test_transaction_is_answered_from_the_canonical_block(live: Live) -> None:
    trunk = ChainBuilder(GENESIS)
    slots = trunk.deploy(ALICE, contract("slots").init_code())
    trunk.block()
    left, right = trunk.fork(), trunk.fork()
    left.send(ALICE, slots)
    (on_left,) = [left.block()]
    # The same transaction is in a later block, after another one.
    right.block()
    right.send(BOB, ALICE.address, value=1)
    right.send(ALICE, slots)
    on_right = right.block()
    shared = on_left.transactions[0]
    assert on_right.transactions[1].raw == shared.raw
    alone = to_hex(on_right.transactions[0].hash)

    chains.import_blocks("places", GENESIS, left.blocks)
    with live.api("places", live.new_key()) as api:
        check_place(api, on_left, 0)
        assert api.result("eth_getTransactionByHash", alone) is None
        follow(api, "places", right.blocks[1:])
        check_place(api, on_right, 0)
        check_place(api, on_right, 1)
        # The side block can still be read by its own hash.
        side = text(on_left)
        (receipt,) = api.result("eth_getBlockReceipts", side)
        assert receipt["blockHash"] == side
        required = {"blockHash": side, "requireCanonical": True}
        assert api.result("eth_getBlockReceipts", required) is None

        left.block()
        left.block()
        follow(api, "places", left.blocks[-2:])
        check_place(api, on_left, 0)
        for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
            assert api.result(method, alone) is None


@pytest.mark.parametrize("depth", [1, 24])
def test_reorganisation_there_and_back(live: Live, depth: int) -> None:
    slug, tree = f"depth-{depth}", Tree()
    left, right = tree.trunk.fork(), tree.trunk.fork()
    first = tree.grow(left, 5, depth)
    second = tree.grow(right, 6, depth + 1)
    third = tree.grow(left, 5, 2)
    assert first[0].header.number == second[0].header.number

    chains.import_blocks(slug, GENESIS, [*tree.trunk.blocks, *first])
    chains.import_blocks(slug, GENESIS, second[:depth])
    key = live.new_key()
    siblings = [*first, *second[:depth]]
    sampled = [*siblings[:3], *siblings[-3:]]
    calls = tree.calls(sampled)
    seen: list[list[Any]] = []
    before = text(first[-1])
    for canonical, side, news in (
        (first, second[:depth], []),
        (second, first, second[depth:]),
        ([*first, *third], second, third),
    ):
        with live.each_worker(slug, key) as workers:
            watchers = [Watcher(api, calls) for api in workers]
            for watcher in watchers:
                watcher.start()
            chains.import_blocks(slug, GENESIS, news)
            after = text(canonical[-1])
            for watcher in watchers:
                watcher.finish(after)
                assert watcher.heads in ([before, after], [after])
            before = after
        with live.each_worker(slug, key) as workers:
            for api in workers:
                check_branch(tree, api, sampled)
                check_canonical(tree, api, canonical, side)
                seen.append(api.results(calls))
    assert all(answers == seen[0] for answers in seen)


def test_block_is_found_by_every_worker_once_one_has_shown_it(live: Live) -> None:
    tree = Tree()
    blocks = tree.grow(tree.trunk, 5, 30)
    key = live.new_key()
    chains.import_blocks("slow", GENESIS, tree.trunk.blocks[:1])
    stopped = threading.Event()
    newest = rounds = 0

    def import_slowly() -> None:
        with chains.importer("slow", GENESIS, batch_blocks=1) as target:
            for block in blocks:
                target.add(encode_block(block))
                target.commit()
                before = rounds
                wait_until(lambda: rounds > before or stopped.is_set())  # noqa: B023  # called at once
        connections.close_all()  # the database connection of this thread
        stopped.set()

    names = [text(block) for block in tree.trunk.blocks]
    with live.each_worker("slow", key) as workers:
        thread = threading.Thread(target=import_slowly)
        thread.start()
        while not stopped.is_set():
            one, other = workers[rounds % 2], workers[(rounds + 1) % 2]
            rounds += 1
            number = int(one.result("eth_blockNumber"), 16)
            name = names[number - 1]
            # One process reports it, and the other one answers.
            assert other.result("eth_getBlockByNumber", hex(number), True)["hash"] == (
                name
            )
            assert other.result("eth_getBlockByHash", name, False)["hash"] == name
            if number > 1:
                assert other.result(*tree.storage(1, hex(number))) == word(number)
                assert other.result(*tree.storage(1, name)) == word(number)
            newest = max(newest, number)
        thread.join()
    assert rounds > 20
    assert newest > 20


def test_traces_belong_to_their_block_whatever_is_canonical(live: Live) -> None:
    tree = Tree()
    left, right = tree.trunk.fork(), tree.trunk.fork()
    first = tree.grow(left, 5, 3)
    second = tree.grow(right, 6, 4)
    third = tree.grow(left, 5, 2)
    chains.import_blocks("traces", GENESIS, [*tree.trunk.blocks, *first])
    chains.import_blocks("traces", GENESIS, second[:3])
    by_hash = [
        ("debug_traceBlockByHash", text(block), options)
        for block in [*first, *second[:3]]
        for options in TRACERS
    ]
    with live.each_worker("traces", live.new_key(may_trace=True)) as apis:
        watchers = [Watcher(api, by_hash) for api in apis]
        assert watchers[0].expected == watchers[1].expected
        for api in apis:
            check_traces(api, first, second[:3])
        # Traces that execute a block. A key may have two at a time.
        watchers[0].start()
        follow(apis[1], "traces", second[3:])
        check_traces(apis[1], second, first)
        for api in apis:
            follow(api, "traces", third)
        check_traces(apis[1], [*first, *third], second)
        watchers[0].finish(text(third[-1]))
        for api in apis:
            assert api.results(by_hash) == watchers[0].expected
            check_traces(api, [*first, *third], second)
