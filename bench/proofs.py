"""eth_getProof at the newest block and 1,000 blocks before it, among 200,000 accounts.

At the newest block, each request names another account, so that no response is cached. A
ratio compares requests per second of the servers' processor time, like that of the other
reads. At older blocks, each request names another block, whose tries a worker process has
to compute.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from statistics import median

import httpx
from django.db import connection as django_connection
from eth_typing import Address

from bench.importing import LAP_BLOCKS, imports_in_turn, speed_rows
from bench.keys import new_key
from bench.per_core import OURS, beside_geth, per_core_rows
from bench.questions import call
from bench.rows import Row
from bench.servers import Target, processor_seconds_of
from bench.token_chain import (
    TokenChain,
    genesis_of,
    holders_of,
    import_chain,
    write_chain,
)
from bench.turns import Say, rounds
from evm.signatures import keccak
from keys.limiter.gcra import MAX_RATE
from samples.builder import ChainBuilder

SLUG = "bench-proofs"
ACCOUNTS = 200_000
SENDERS = 16
BLOCKS = 1_060
TRANSFERS = 2
"""Transfers in each block, to random accounts."""
BACK = 1_000
OLDER_PROOFS = 20

IMPORT_LAPS = 4
IMPORT_HOLDERS = 20_000

ROUNDS = 5
REQUESTS = 1_000
CONNECTIONS = 16
_JSON = {"content-type": "application/json"}


def proofs(folder: Path, say: Say) -> list[Row]:
    """Measure proofs of accounts."""
    chain, path = prepare(folder, say)
    with beside_geth(chain, path, folder / "proofs-geth", say) as targets:
        rows = [*newest_rows(targets, say), older_row(targets[path].port, path, say)]
    return [*rows, *import_rows(folder, say)]


def newest_rows(targets: dict[str, Target], say: Say) -> list[Row]:
    """Measure proofs of the newest state. targets: by URL path."""
    say("proofs: eth_getProof, newest block")
    numbers = count()
    found: dict[str, list[float]] = defaultdict(list)
    for number in rounds(ROUNDS + 1):
        bodies = [body(each, "latest") for each in islice(numbers, REQUESTS)]
        for path, target in targets.items():
            before = processor_seconds_of(target.pids)
            asyncio.run(_send(target.port, path, bodies))
            if number > 1:  # the first round warms up
                rate = len(bodies) / (processor_seconds_of(target.pids) - before)
                found[target.name].append(rate)
    case = "eth_getProof, newest block, different accounts"
    return per_core_rows(case, found, ">= 0.5")


def older_row(port: int, path: str, say: Say) -> Row:
    """Measure proofs of blocks far below the head, one after the other."""
    say(f"proofs: eth_getProof, {BACK} blocks back")
    times = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for number in range(OLDER_PROOFS + 1):
            asked = body(number, hex(BLOCKS - BACK - number))
            begun = time.perf_counter()
            answer = client.post(path, content=asked, headers=_JSON)
            times.append((time.perf_counter() - begun) * 1000)
            assert "result" in answer.json(), answer.text
    # The first request starts a worker process.
    case = f"eth_getProof, {BACK} blocks back, {OURS}"
    return Row("reads", case, median(times[1:]), "ms", required="<= 150")


def import_rows(folder: Path, say: Say) -> list[Row]:
    """Measure the cost of keeping former trie nodes: time, and bytes per block."""
    say("proofs: imports with and without former trie nodes")
    found = imports_in_turn(
        folder, "--proofs", most_laps=IMPORT_LAPS, holders=IMPORT_HOLDERS
    )
    with django_connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size('nodeapi_trienodeversion')")
        (size,) = cursor.fetchone()
    names = "import without trie nodes", "import with --proofs all"
    blocks = LAP_BLOCKS * (1 + len(found))
    return [
        *speed_rows("reads", names, [(ours, kept) for kept, ours in found]),
        Row("reads", "trie nodes kept by --proofs all", size / blocks, "bytes/block"),
    ]


def prepare(folder: Path, say: Say) -> tuple[TokenChain, str]:
    """Build and import the chain. Return it, and a URL path with a new key."""
    say("proofs: builds and imports its chain")
    signers = holders_of(SENDERS)
    genesis = genesis_of(signers)
    for number in range(ACCOUNTS):
        genesis["alloc"][f"0x{account(number).hex()}"] = {"balance": hex(number + 1)}
    built = ChainBuilder(genesis)
    chance = random.Random(BLOCKS)
    for _ in range(BLOCKS):
        for sender in chance.sample(signers, TRANSFERS):
            built.send(sender, account(chance.randrange(ACCOUNTS)), value=1)
        built.block()
    chain = write_chain(folder / SLUG, genesis, built)
    import_chain(chain, SLUG)
    return chain, f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"


def account(number: int) -> Address:
    """Return the address of an account with ether."""
    return Address(keccak(b"account %d" % number)[:20])


def body(number: int, block: str) -> bytes:
    """Return the request for the proof of an account."""
    return call("eth_getProof", f"0x{account(number).hex()}", [], block)


async def _send(port: int, path: str, bodies: Sequence[bytes]) -> None:
    """Send requests over a few connections, and check that they succeed."""
    waiting = iter(bodies)

    async def send_in_turn(client: httpx.AsyncClient) -> None:
        for each in waiting:
            answer = await client.post(path, content=each, headers=_JSON)
            assert b'"accountProof"' in answer.content, answer.text

    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False
    ) as client:
        await asyncio.gather(*(send_in_turn(client) for _ in range(CONNECTIONS)))
