"""eth_getProof at the newest block and 1,000 blocks before it, among 200,000 accounts.

At the newest block, each request names another account, so that no response is cached. A
ratio compares requests per second of the servers' processor time, like that of the other
reads. At older blocks, each request names another block, whose tries a worker process has
to compute.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from statistics import median

import httpx
from django.core.management import call_command
from django.db import connection as django_connection
from eth_typing import Address

from bench.endpoint import Target
from bench.importing import BULK_BATCH, chain_folder
from bench.keys import new_key
from bench.per_core import OURS, Say, beside_geth, processor_seconds_of
from bench.racers import racer
from bench.rows import Row, median_ratio
from bench.serving_geth import GETH
from bench.token_chain import TokenChain, genesis_of, holders_of, in_folder
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
IMPORT_LAP_BLOCKS = 32
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
    for number in range(ROUNDS + 1):
        bodies = [body(each, "latest") for each in islice(numbers, REQUESTS)]
        for path, target in targets.items():
            before = processor_seconds_of(target.pids)
            asyncio.run(_send(target.port, path, bodies))
            if number:  # the first round warms up
                rate = len(bodies) / (processor_seconds_of(target.pids) - before)
                found[target.name].append(rate)
    rows = []
    for name, rates in found.items():
        ratio = required = None
        if name == OURS and GETH in found:
            ratio, required = median_ratio(rates, found[GETH]), ">= 0.5"
        case = f"eth_getProof, newest block, different accounts, {name}"
        reference = None if ratio is None else GETH
        unit = "requests/s per core"
        rows.append(Row("reads", case, median(rates), unit, ratio, reference, required))
    return rows


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
    blocks = IMPORT_LAPS * IMPORT_LAP_BLOCKS
    chain = chain_folder(folder, holders=IMPORT_HOLDERS, blocks=blocks)
    other = chain.with_name(f"{chain.name}-proven")
    other.symlink_to(chain)
    with (
        racer("bench.import_ours", chain, BULK_BATCH) as without,
        racer("bench.import_proven", other, BULK_BATCH) as proven,
    ):
        laps = [
            (
                IMPORT_LAP_BLOCKS / without.run(IMPORT_LAP_BLOCKS).seconds,
                IMPORT_LAP_BLOCKS / proven.run(IMPORT_LAP_BLOCKS).seconds,
            )
            for _ in range(IMPORT_LAPS)
        ]
    before, after = [lap[0] for lap in laps], [lap[1] for lap in laps]
    with django_connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size('nodeapi_trienodeversion')")
        (size,) = cursor.fetchone()
    ratio = median_ratio(after, before)
    others = "without trie nodes"
    return [
        Row(
            "reads",
            "import with --proofs all",
            median(after),
            "blocks/s",
            ratio,
            others,
        ),
        Row("reads", "trie nodes kept by --proofs all", size / blocks, "bytes/block"),
    ]


def prepare(folder: Path, say: Say) -> tuple[TokenChain, str]:
    """Build and import the chain. Return it, and a URL path with a new key."""
    chain = in_folder(folder / SLUG)
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
    chain.genesis_path.parent.mkdir(parents=True, exist_ok=True)
    chain.genesis_path.write_text(json.dumps(genesis))
    chain.chain_path.write_bytes(built.rlp())
    call_command(
        "import_chain",
        str(chain.chain_path),
        network=SLUG,
        genesis=chain.genesis_path,
    )
    return chain, f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"


def account(number: int) -> Address:
    """Return the address of an account with ether."""
    return Address(keccak(b"account %d" % number)[:20])


def body(number: int, block: str) -> bytes:
    """Return the request for the proof of an account."""
    params = [f"0x{account(number).hex()}", [], block]
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "eth_getProof", "params": params}
    ).encode()


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
