"""A network that starts at a checkpoint of a real geth answers as geth's archive does."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evm.blocks import Block, encode_block
from networks.services import Checkpoint, add_upstream
from tests.golden.geth import Geth, GethError, running_geth
from tests.live import programs
from tests.live.comparing import Comparison
from tests.nodeapi.follower.net import Net
from tests.support.live import Api, live_service
from tests.support.live import request as call
from tests.support.sparse import READER, WRITER, Load, kept_garbage_collector

CHECKPOINT = 300
READS = int(os.environ.get("LIVE_READS", "1700"))
WINDOW = 100
"""Blocks from the checkpoint to the head of a geth without archive, which keeps 128 states.
"""


@dataclass
class Case:
    """An archive, and the service that follows it or another geth."""

    load: Load
    archive: Geth
    service: Api
    head: int
    has_old_states: bool
    """Whether the upstream is an archive."""


@pytest.fixture(
    scope="module",
    params=["prague, archive", "amsterdam, archive", "prague, window"],
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
    load = Load(fork, accounts=20_000, slots=20_000)
    blocks = live_blocks // 3 if kind == "archive" else WINDOW
    chain = load.grow(load.chain(), CHECKPOINT - 20, seed=0, transactions=0)
    load.grow(chain, 20 + blocks, seed=1)
    raw = b"".join(map(encode_block, chain.blocks))
    with ExitStack() as stack:

        def start(name: str, *, archive: bool) -> Geth:
            folder: Path = tmp_path_factory.mktemp(name)
            return stack.enter_context(
                running_geth(binary, load.genesis, raw, folder, archive=archive)
            )

        archive = start("archive", archive=True)
        upstream = archive if kind == "archive" else start("window", archive=False)
        yield Case(
            load,
            archive,
            stack.enter_context(
                followed(f"{fork}-{kind}", load, chain.blocks[CHECKPOINT - 1], upstream)
            ),
            len(chain.blocks),
            kind == "archive",
        )


@contextmanager
def followed(slug: str, load: Load, checkpoint: Block, upstream: Geth) -> Iterator[Api]:
    """Yield a client of a service whose network starts at a block of an upstream."""
    number, block_hash = checkpoint.header.number, checkpoint.header.hash
    net = Net(
        slug=slug,
        genesis=load.genesis,
        checkpoint=Checkpoint(number, block_hash, 256),
    )
    add_upstream(network=net.row(), url=upstream.url)
    head = upstream.call("eth_getBlockByNumber", ["latest", False])["result"]
    wanted = int(head["number"], 16), bytes.fromhex(head["hash"][2:])
    with live_service() as live, kept_garbage_collector(), net.followed():
        started = time.monotonic()
        net.wait(lambda: net.head()[0] >= number, net.head)
        prepared = time.monotonic()
        net.wait(lambda: net.head() == wanted, net.head)
        print(
            f"checkpoint after {prepared - started:.1f} s,"
            f" {wanted[0] - number} blocks in {time.monotonic() - prepared:.1f} s"
        )
        with live.api(slug, key=live.new_key(may_trace=True)) as api:
            net.wait(lambda: api.send(call("eth_gasPrice")).is_success)
            yield api


def test_blocks_and_traces_are_geths(case: Case) -> None:
    comparison = Comparison(case.service, case.archive)
    for number in range(CHECKPOINT + 1, case.head + 1, 8):
        comparison.compare(number, number)
    print(comparison.summary())


def test_random_reads_are_the_archives(case: Case) -> None:
    since = [hex(number) for number in range(CHECKPOINT, case.head + 1)]
    check_reads(case, random_reads(case, [*since, *["latest"] * len(since)], READS))


def test_below_the_checkpoint_an_archive_proves_reads_and_traces(case: Case) -> None:
    oldest_in_window = CHECKPOINT + WINDOW - 128
    below = [hex(number) for number in range(CHECKPOINT - 200, oldest_in_window)]
    calls = random_reads(case, below, READS // 10)
    if not case.has_old_states:
        for answer in case.service.batch(calls):
            assert answer["error"]["data"]["oldestBlock"] == hex(CHECKPOINT)
        return
    check_reads(case, calls)
    comparison = Comparison(case.service, case.archive)
    for number in range(CHECKPOINT - 6, CHECKPOINT + 1, 3):
        comparison.compare(number, number)
    print(comparison.summary())


def check_reads(case: Case, calls: list[tuple[Any, ...]]) -> None:
    for start in range(0, len(calls), 100):
        part = calls[start : start + 100]
        for asked, found, wanted in zip(
            part, case.service.batch(part), case.archive.batch(part), strict=True
        ):
            assert found == wanted, asked


def random_reads(case: Case, blocks: list[str], count: int) -> list[tuple[Any, ...]]:
    """Return reads of accounts and slots after some of the blocks, and calls."""
    chance = random.Random(3)
    calls: list[tuple[Any, ...]] = []
    for _ in range(count):
        block = chance.choice(blocks)
        known = chance.random() < 0.9
        address = chance.choice(case.load.addresses) if known else chance.randbytes(20)
        name = f"0x{address.hex()}"
        slot = hex(chance.randrange(2 * case.load.slots))
        data = f"0x{case.load.asked(chance).hex()}"
        calls.append(
            chance.choice(
                [
                    ("eth_getStorageAt", f"0x{WRITER.hex()}", slot, block),
                    ("eth_getStorageAt", name, slot, block),
                    ("eth_getBalance", name, block),
                    ("eth_getTransactionCount", name, block),
                    ("eth_getCode", f"0x{READER.hex()}", block),
                    ("eth_call", {"to": f"0x{READER.hex()}", "data": data}, block),
                ]
            )
        )
    return calls
