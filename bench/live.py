"""Following an upstream: delays of heads, catching up, reorganisations, and their cost.

The upstream is simulated (`bench.upstream`) in a process of its own on this machine. It
serves blocks that were built before, so that it takes little processor time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median

from bench.endpoint import SLUG, blocks_by_hash, prepare
from bench.importing import chain_folder
from bench.keys import new_key
from bench.listeners import Listeners, Opening, listeners
from bench.loadgen import Job, loadgen
from bench.racers import racer
from bench.rows import Row, median_ratio
from bench.servers import SERVICE, serving, split_cores
from bench.token_chain import (
    TOKEN,
    add_block,
    build_in_process,
    genesis_of,
    holders_of,
    in_folder,
)
from bench.turns import Say, rounds
from bench.upstream import Upstream, upstream
from config import env, services
from evm.blocks import decode_block, encode_block
from keys.limiter.gcra import MAX_RATE
from networks.models import Network
from networks.services import add_upstream
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network
from nodeapi.models import FollowerStatus
from samples.builder import ChainBuilder

HEADS, HEAD_TRANSFERS = 80, 20
HEAD_PAUSE_SECONDS = 0.2
"""Pause between two blocks, long enough for the work of the previous block to end."""
WARM_HEADS = 10
MOST_MEDIAN_MS, MOST_P99_MS = 150, 500

LAPS, LAP_BLOCKS = 4, 64
"""Laps of catching up, and their blocks. The first lap is not counted, because it
fills caches."""
LEAST_CATCH_UP = 0.9
CATCH_UP_HOLDERS = 1_003

DEPTH, DEPTH_TRANSFERS = 7, 100
REORGANISATIONS = 4
REORGANISED_HOLDERS = 500
MOST_REORGANISATION_SECONDS = 1

SUBSCRIBERS = 1_000
ROUNDS = 9
MOST_LAST_MS = 100

COST_ROUNDS = 9
COST_SECONDS = 0.4
COST_CONNECTIONS = 16
LEAST_THROUGHPUT = 0.95


def live(folder: Path, say: Say) -> list[Row]:
    """Measure everything that following an upstream costs."""
    return [
        *_heads(folder, say),
        *_catch_up(folder, say),
        *_reorganisations(folder, say),
        *_subscribers(folder, say),
        *_cost(folder, say),
    ]


def _heads(folder: Path, say: Say) -> list[Row]:
    """Measure the time from the upstream's notification to ours."""
    say(f"live: {HEADS} heads of {HEAD_TRANSFERS} transfers")
    slug = "bench-live-heads"
    count = WARM_HEADS + HEADS
    build_in_process(
        folder / slug, holders=500, blocks=[f"{count}x{HEAD_TRANSFERS}"], chain_id=5_153
    )
    blocks = _blocks(folder / slug)
    genesis_path = in_folder(folder / slug).genesis_path
    server_core, client_core = split_cores()
    delays = []
    with ExitStack() as stack:
        node = stack.enter_context(upstream(genesis_path))
        make_network(slug, genesis_path, node)
        stack.enter_context(follower(slug))
        follow(slug, node, blocks[:WARM_HEADS], _hash(blocks[WARM_HEADS - 1]))
        target = stack.enter_context(serving("live", SERVICE, cores=server_core))
        crowd = stack.enter_context(listeners(client_core))
        open_sockets(crowd, target.port, slug, 1, ["newHeads"])
        for block in blocks[WARM_HEADS:]:
            time.sleep(HEAD_PAUSE_SECONDS)
            began = node.show([block])
            delays.append(1000 * (crowd.receive() - began))
    case = f"head at a subscriber, blocks of {HEAD_TRANSFERS} transfers"
    p99 = sorted(delays)[len(delays) * 99 // 100]
    return [
        Row("live", case, median(delays), "ms p50", required=f"<= {MOST_MEDIAN_MS}"),
        Row("live", case, p99, "ms p99", required=f"<= {MOST_P99_MS}"),
    ]


def _catch_up(folder: Path, say: Say) -> list[Row]:
    """Compare catching up with the import of the same blocks from a file."""
    say(f"live: catches up {LAPS * LAP_BLOCKS} blocks, and imports them")
    count = 1 + LAPS * LAP_BLOCKS
    chain = chain_folder(folder, holders=CATCH_UP_HOLDERS, blocks=count)
    genesis_path = in_folder(chain).genesis_path
    blocks = _blocks(chain)
    slug = "bench-live-catch-up"
    laps = []
    with ExitStack() as stack:
        node = stack.enter_context(upstream(genesis_path))
        ours = stack.enter_context(racer("bench.import_ours", chain))
        make_network(slug, genesis_path, node)
        process = stack.enter_context(follower(slug))
        follow(slug, node, blocks[:1], _hash(blocks[0]))
        ours.run(1)
        for first in range(1, count, LAP_BLOCKS):
            lap = blocks[first : first + LAP_BLOCKS]
            with paused(process):
                imported = ours.run(len(lap)).seconds
            laps.append((imported, follow(slug, node, lap, _hash(lap[-1]))))
    imports = [LAP_BLOCKS / lap[0] for lap in laps[1:]]
    followed = [LAP_BLOCKS / lap[1] for lap in laps[1:]]
    reference = "import from a file"
    return [
        Row("live", reference, median(imports), "blocks/s"),
        Row(
            "live",
            "catching up with an upstream",
            median(followed),
            "blocks/s",
            median_ratio(followed, imports),
            reference,
            f">= {LEAST_CATCH_UP}",
        ),
    ]


def _reorganisations(folder: Path, say: Say) -> list[Row]:
    """Measure the time until a longer branch of new blocks is canonical."""
    say(f"live: {REORGANISATIONS} reorganisations of depth {DEPTH}")
    slug = "bench-live-branches"
    holders = holders_of(REORGANISED_HOLDERS)
    genesis = genesis_of(holders, 5_154)
    genesis_path = folder / slug / "genesis.json"
    genesis_path.parent.mkdir()
    genesis_path.write_text(json.dumps(genesis))
    chance = random.Random(1)
    chain = ChainBuilder(genesis)
    seconds = []

    def grow(branch: ChainBuilder, count: int) -> list[bytes]:
        return [
            encode_block(add_block(branch, holders, chance, DEPTH_TRANSFERS))
            for _ in range(count)
        ]

    with upstream(genesis_path) as node:
        make_network(slug, genesis_path, node)
        with follower(slug):
            first = grow(chain, 3)
            follow(slug, node, first, _hash(first[-1]))
            for _ in rounds(REORGANISATIONS):
                branch = chain.fork()
                old, new = grow(chain, DEPTH), grow(branch, DEPTH + 1)
                follow(slug, node, old, _hash(old[-1]))
                time.sleep(1)
                seconds.append(follow(slug, node, new, _hash(new[-1])))
                chain = branch
    return [
        Row(
            "live",
            f"reorganisation of depth {DEPTH}, {DEPTH_TRANSFERS} transfers per block",
            median(seconds),
            "s",
            required=f"<= {MOST_REORGANISATION_SECONDS}",
        ),
    ]


def _subscribers(folder: Path, say: Say) -> list[Row]:
    """Measure the time until the last of many sockets has received a head and its log."""
    slug = "bench-live-sockets"
    chain = folder / slug
    build_in_process(chain, holders=10, blocks=[f"{ROUNDS + 1}x1"], chain_id=5_155)
    server_core, client_core = split_cores()
    limits = {
        "CONNECTIONS_PER_KEY": str(2 * SUBSCRIBERS),
        "CONNECTIONS_PER_ADDRESS": str(2 * SUBSCRIBERS),
    }
    times = []
    with ExitStack() as stack:
        importer = stack.enter_context(
            racer("bench.import_ours", chain, "--batch", "1")
        )
        importer.run(1)
        target = stack.enter_context(
            serving("live", SERVICE, cores=server_core, environ=limits)
        )
        crowd = stack.enter_context(listeners(client_core))
        subscriptions = ["newHeads"], ["logs", {"address": f"0x{TOKEN.hex()}"}]
        seconds = open_sockets(crowd, target.port, slug, SUBSCRIBERS, *subscriptions)
        say(f"live: {SUBSCRIBERS} subscribers in {seconds:.1f} s")
        for _ in rounds(ROUNDS):
            lap = importer.run(1)
            times.append(1000 * (crowd.receive(len(subscriptions)) - lap.began))
            time.sleep(0.2)
    case = f"head and log to {SUBSCRIBERS:,} subscribers of each, the last one"
    return [Row("live", case, median(times), "ms", required=f"<= {MOST_LAST_MS}")]


def _cost(folder: Path, say: Say) -> list[Row]:
    """Compare requests while a network is followed that has no new blocks."""
    path = prepare(folder, say)
    chain = in_folder(folder / SLUG)
    case = blocks_by_hash()
    server_core, generator_core = split_cores()
    alone, followed = [], []
    with ExitStack() as stack:
        node = stack.enter_context(upstream(chain.genesis_path))
        blocks = _blocks(folder / SLUG)
        node.show(blocks)
        make_network(SLUG, chain.genesis_path, node)
        process = stack.enter_context(follower(SLUG))
        _wait_until_followed(SLUG)
        wait_for_head(SLUG, _hash(blocks[-1]))
        generator = stack.enter_context(loadgen(generator_core))
        target = stack.enter_context(serving("live", SERVICE, cores=server_core))
        job = Job(target.port, case.requests(path), COST_CONNECTIONS, COST_SECONDS)
        target.load(generator, job)
        for number in rounds(COST_ROUNDS):
            say(f"live: cost of following, round {number} of {COST_ROUNDS}")
            with paused(process):
                alone.append(target.load(generator, job).rate)
            followed.append(target.load(generator, job).rate)
    start = f"{case.name}, {COST_CONNECTIONS} connections"
    return [
        Row("live", f"{start}, no follower", median(alone), "requests/s"),
        Row(
            "live",
            f"{start}, followed without new blocks",
            median(followed),
            "requests/s",
            median_ratio(followed, alone),
            "no follower",
            f">= {LEAST_THROUGHPUT}",
        ),
    ]


def _wait_until_followed(slug: str) -> None:
    """Wait until the follower has looked at its upstream. Raises: TimeoutError."""
    looked = FollowerStatus.objects.filter(network__slug=slug, best_number__gt=0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if looked.exists():
            return
        time.sleep(0.1)
    raise TimeoutError(f"the network {slug} is not followed")


def open_sockets(
    crowd: Listeners, port: int, slug: str, count: int, *subscriptions: list[object]
) -> float:
    """Open sockets with these subscriptions each; return how many seconds it took."""
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "eth_subscribe", "params": params}
        for number, params in enumerate(subscriptions)
    ]
    path = f"/{slug}/ws/v3/{new_key(credits_per_second=MAX_RATE)}"
    headers = ["User-Agent: bench"] * count
    return crowd.open(Opening(port, path, headers, json.dumps(calls)))


def _blocks(folder: Path) -> list[bytes]:
    """Return the blocks of a chain on disk, as RLP."""
    with in_folder(folder).blocks() as raw_blocks:
        return list(raw_blocks)


def _hash(raw: bytes) -> bytes:
    return decode_block(raw).header.hash


PATIENCE_SECONDS = 300
POLL_SECONDS = 0.02
"""Seconds between two reads of the head. More reads would take time from the follower."""


def make_network(slug: str, genesis_path: Path, node: Upstream) -> None:
    """Create a network with an upstream, unless it exists."""
    with importer_connection() as connection:
        genesis = json.loads(genesis_path.read_text())
        network_id = open_network(connection, slug, genesis=genesis)
    add_upstream(network=Network.objects.get(pk=network_id), url=node.url)


@contextmanager
def follower(slug: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `manage.py follow --one` for a network during a `with` block."""
    process = subprocess.Popen(
        [sys.executable, str(env.BASE_DIR / "manage.py"), "follow", "--one", slug],
        env=services.child_environment(),
        cwd=env.BASE_DIR,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def paused(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Suspend a process during a `with` block."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def follow(slug: str, node: Upstream, blocks: Sequence[bytes], head: bytes) -> float:
    """Let the upstream announce blocks. Return the seconds until the last is our head.

    The time begins with the upstream's notification, and ends when a reader of the
    database sees the head. blocks: RLP. head: hash of the last one.
    Raises: TimeoutError.
    """
    began = node.show(blocks)
    return wait_for_head(slug, head) - began


def wait_for_head(slug: str, head: bytes, seconds: float = PATIENCE_SECONDS) -> float:
    """Wait for a network's head, and return the `time.monotonic` at which it was seen.

    Raises: TimeoutError.
    """
    deadline = time.monotonic() + seconds
    while (now := time.monotonic()) < deadline:
        found = Network.objects.values_list("head_hash", flat=True).get(slug=slug)
        if found is not None and bytes(found) == head:
            return now
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"the network {slug} did not follow its upstream")
