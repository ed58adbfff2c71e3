"""A network that starts at a checkpoint of a real geth answers as geth's archive does."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from abi.encoding import call_data, mapping_slot
from evm.blocks import Block, encode_block
from networks.services import Checkpoint, add_upstream
from tests.golden.geth import Geth, GethError, running_geth
from tests.golden.options import EXECUTED
from tests.live import programs
from tests.live.comparing import Comparison
from tests.nodeapi.follower.net import Net
from tests.support import chains
from tests.support.live import Api, live_service
from tests.support.live import request as call
from tests.support.sparse import (
    READER,
    TOKEN,
    WRITER,
    Load,
    kept_garbage_collector,
)

CHECKPOINT = 1_000
FULL_BLOCKS, FULL_READS, FULL = 500, 5_000, 300
"""Followed blocks and reads, with this number in LIVE_BLOCKS."""
COMPARED_EVERY, EXECUTED_EVERY = 8, 40
WINDOW = 100
"""Blocks by which a geth gets ahead that keeps the newest 128 states."""


@dataclass
class Case:
    """An archive, and the service that follows it or another node."""

    load: Load
    archive: Geth
    service: Api
    head: int
    reads: int
    kind: str
    """The upstream: "archive", "window" or "own node"."""


@pytest.fixture(
    scope="module",
    params=[
        f"{fork}, {kind}"
        for fork in ("prague", "amsterdam")
        for kind in ("archive", "window", "own node")
    ],
)
def case(
    request: pytest.FixtureRequest,
    live_blocks: int,
    module_db: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Case]:
    try:
        binary = programs.geth()
    except GethError as error:
        pytest.skip(str(error))
    fork, kind = request.param.split(", ")
    load = Load(fork, accounts=20_000, slots=20_000, has_tokens=True)
    chain = load.grow(load.chain(), CHECKPOINT - 20, seed=0, transactions=0)
    load.grow(chain, 20 + live_blocks * FULL_BLOCKS // FULL, seed=1)
    blocks = chain.blocks
    slug = request.param.replace(", ", "-").replace(" ", "-")
    checkpoint = blocks[CHECKPOINT - 1].header
    net = Net(
        slug=slug,
        genesis=load.genesis,
        checkpoint=Checkpoint(checkpoint.number, checkpoint.hash, 256),
    )
    with ExitStack() as stack:

        def start(name: str, first: list[Block], *, archive: bool = True) -> Geth:
            folder: Path = tmp_path_factory.mktemp(name)
            raw = b"".join(map(encode_block, first))
            apis = "admin,eth,debug"
            return stack.enter_context(
                running_geth(
                    *(binary, load.genesis, raw, folder), apis=apis, archive=archive
                )
            )

        archive = start("archive", blocks)
        live = stack.enter_context(live_service())
        stack.enter_context(kept_garbage_collector())
        key = live.new_key(may_trace=True)
        url, upstream, ends = archive.url, archive, [len(blocks)]
        if kind == "window":
            ends = [*range(CHECKPOINT + WINDOW, len(blocks), WINDOW), len(blocks)]
            upstream = start("window", blocks[: ends[0]], archive=False)
            url = upstream.url
        elif kind == "own node":
            chains.import_blocks(f"full-{fork}", load.genesis, blocks)
            url = f"{live.base_url}/full-{fork}/v3/{key}"
        add_upstream(network=net.row(), url=url)
        began = time.monotonic()
        stack.enter_context(net.followed())
        net.wait(lambda: net.head()[0] >= CHECKPOINT, net.head)
        prepared = time.monotonic()
        for before, end in zip([CHECKPOINT, *ends], ends, strict=False):
            if before > CHECKPOINT:
                file = tmp_path_factory.mktemp("more") / "chain.rlp"
                file.write_bytes(b"".join(map(encode_block, blocks[before:end])))
                assert upstream.call("admin_importChain", [str(file)])["result"]
            follow(net, blocks[end - 1])
        print(
            f"{request.param}: checkpoint after {prepared - began:.1f} s,"
            f" {len(blocks) - CHECKPOINT} blocks in {time.monotonic() - prepared:.1f} s"
        )
        with live.api(slug, key=key) as api:
            net.wait(lambda: api.send(call("eth_gasPrice")).is_success)
            reads = live_blocks * FULL_READS // FULL
            yield Case(load, archive, api, len(blocks), reads, kind)


def follow(net: Net, block: Block) -> None:
    """Wait until a block is the head, as long as there is progress."""
    wanted = block.header.number, block.header.hash
    while (before := net.head()) != wanted:
        net.wait(lambda: net.head() != before, net.head)


def test_blocks_and_traces_are_geths(case: Case) -> None:
    comparison = Comparison(case.service, case.archive)
    for number in range(CHECKPOINT + 1, case.head + 1, COMPARED_EVERY):
        comparison.compare(number, number)
    for number in range(CHECKPOINT + 1, case.head + 1, EXECUTED_EVERY):
        comparison.compare_calls(
            [
                ("debug_traceBlockByNumber", hex(number), options)
                for options in EXECUTED.values()
                if "limit" not in options  # see `tests.golden.differences`
            ]
        )
    print(comparison.summary())


def test_random_reads_are_the_archives(case: Case) -> None:
    since = [hex(number) for number in range(CHECKPOINT, case.head + 1)]
    blocks = [*since, *["latest"] * len(since)]
    check_reads(case, random_reads(case, blocks, case.reads))


def test_below_the_checkpoint_an_archive_proves_reads_and_traces(case: Case) -> None:
    end = min(CHECKPOINT, case.head - 128) if case.kind == "window" else CHECKPOINT
    below = [hex(number) for number in range(CHECKPOINT - 200, end)]
    calls = random_reads(case, below, case.reads // 10)
    if case.kind == "window":
        for answer in case.service.batch(calls):
            assert answer["error"]["data"]["oldestBlock"] == hex(CHECKPOINT)
        return
    check_reads(case, calls)
    if case.kind != "archive":
        return
    comparison = Comparison(case.service, case.archive)
    for number in range(CHECKPOINT - 6, CHECKPOINT + 1, 3):
        comparison.compare(number, number)
    print(comparison.summary())


def check_reads(case: Case, calls: list[tuple[Any, ...]]) -> None:
    began = time.monotonic()
    for start in range(0, len(calls), 100):
        part = calls[start : start + 100]
        for asked, found, wanted in zip(
            part, case.service.batch(part), case.archive.batch(part), strict=True
        ):
            assert found == wanted, asked
    print(f"{len(calls)} reads in {time.monotonic() - began:.1f} s")


def random_reads(case: Case, blocks: list[str], count: int) -> list[tuple[Any, ...]]:
    """Return reads of accounts and slots after some of the blocks, and calls."""
    chance = random.Random(3)
    calls: list[tuple[Any, ...]] = []
    for _ in range(count):
        block = chance.choice(blocks)
        known = chance.random() < 0.9
        address = chance.choice(case.load.addresses) if known else chance.randbytes(20)
        name, token = f"0x{address.hex()}", f"0x{TOKEN.hex()}"
        slot = hex(chance.randrange(2 * case.load.slots))
        data = f"0x{case.load.asked(chance).hex()}"
        balance = f"0x{call_data('balanceOf(address)', address).hex()}"
        calls.append(
            chance.choice(
                [
                    ("eth_getStorageAt", f"0x{WRITER.hex()}", slot, block),
                    ("eth_getStorageAt", name, slot, block),
                    ("eth_getStorageAt", token, hex(mapping_slot(address, 0)), block),
                    ("eth_getBalance", name, block),
                    ("eth_getTransactionCount", name, block),
                    ("eth_getCode", f"0x{READER.hex()}", block),
                    ("eth_call", {"to": f"0x{READER.hex()}", "data": data}, block),
                    ("eth_call", {"to": token, "data": balance}, block),
                ]
            )
        )
    return calls
