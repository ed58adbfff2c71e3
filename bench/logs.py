"""Searches for logs in a log index of a million rows, and the cost of the index.

The chain transfers tokens. One holder of them has a hundred transfers; the index also gets
a million rows of an unused contract, spread over the same blocks. The service runs on one
core, the load generator on the other one, and PostgreSQL on both.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from django.core.management import call_command
from django.db import connection as django_connection
from eth_typing import Address

from bench.endpoint import SERVICE, Target, serving, split_cores
from bench.importing import BULK_BATCH, chain_folder
from bench.keys import new_key
from bench.loadgen import Job, Loadgen, loadgen
from bench.questions import http_request
from bench.racers import racer
from bench.rows import Row, median_ratio
from bench.token_chain import (
    TOKEN,
    TRANSFER_GAS,
    TokenChain,
    genesis_of,
    holders_of,
    in_folder,
)
from evm.signatures import keccak
from keys.limiter.gcra import MAX_RATE
from nodeapi.chain.abi import call_data
from nodeapi.chain.database import importer_connection
from nodeapi.log_keys import POSITION_BITS, event_key, key
from samples.builder import ChainBuilder
from samples.signers import Signer

SLUG = "bench-logs"
HOLDERS = 400
BLOCKS = 100
TRANSFERS = 20
FULL_TRANSFERS = 200
"""Transfers of the last block."""
INDEX_ROWS = 1_000_000
CONTRACT = b"\x71" * 20

TRANSFER = keccak(b"Transfer(address,address,uint256)")

ROUNDS = 5
SECONDS = 1.0
CONNECTIONS = 16

IMPORT_LAPS = 6
IMPORT_LAP_BLOCKS = 20
IMPORT_HOLDERS = 1_000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Search:
    """A filter, and the number of logs that it selects."""

    name: str
    criteria: dict[str, Any]
    hits: int


def logs(folder: Path, say: Say) -> list[Row]:
    """Measure searches, and imports with and without the index."""
    return [*_searches(folder, say), *_imports(folder, say)]


def _searches(folder: Path, say: Say) -> list[Row]:
    chain, receiver = _chain(folder / SLUG)
    say(f"logs: imports its chain and adds {INDEX_ROWS:,} rows to the log index")
    call_command(
        "import_chain",
        str(chain.chain_path),
        network=SLUG,
        genesis=chain.genesis_path,
    )
    _add_rows(INDEX_ROWS)
    with django_connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    path = f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"
    server_core, generator_core = split_cores()
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        target = stack.enter_context(serving("ours", SERVICE, cores=server_core))
        return [
            row
            for search in _filters(receiver)
            for row in _measured(search, target, generator, path)
        ]


def _filters(receiver: Signer) -> list[_Search]:
    topic = "0x" + receiver.address.rjust(32, b"\0").hex()
    event = "0x" + TRANSFER.hex()
    token = "0x" + TOKEN.hex()
    full = hex(BLOCKS + 1)
    return [
        _Search(
            "address and topic over the whole chain, 100 hits in a million logs",
            {"fromBlock": "0x0", "address": token, "topics": [event, None, topic]},
            BLOCKS,
        ),
        _Search(
            "one block of 200 logs",
            {"fromBlock": full, "toBlock": full},
            FULL_TRANSFERS,
        ),
        _Search(
            "one block of 200 logs, by address and event",
            {"fromBlock": full, "toBlock": full, "address": token, "topics": [event]},
            FULL_TRANSFERS,
        ),
    ]


def _measured(
    search: _Search, target: Target, generator: Loadgen, path: str
) -> Iterable[Row]:
    """Yield rate, median latency and 99th percentile of a search."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs"}
    body = json.dumps({**call, "params": [search.criteria]}).encode()
    job = Job(target.port, [http_request(path, body)], CONNECTIONS, SECONDS)
    _require_hits(target.port, path, body, search.hits)
    rounds = [target.load(generator, job) for _ in range(ROUNDS)]
    name = f"eth_getLogs, {search.name}"
    yield Row("reads", name, median(r.rate for r in rounds), "requests/s")
    yield Row("reads", name, median(r.p50_ms for r in rounds), "ms p50")
    yield Row(
        "reads",
        name,
        median(r.processor_seconds for r in rounds) * 1e6,
        "µs of processor",
    )


def _require_hits(port: int, path: str, body: bytes, hits: int) -> None:
    """Raise RuntimeError if a search does not select the expected number of logs."""
    client = HTTPConnection("127.0.0.1", port)
    client.request("POST", path, body, {"Content-Type": "application/json"})
    answer = json.loads(client.getresponse().read())
    client.close()
    found = len(answer.get("result", ()))
    if found != hits:
        raise RuntimeError(f"{found} logs instead of {hits}: {str(answer)[:200]}")


def _imports(folder: Path, say: Say) -> list[Row]:
    say("logs: imports with and without the log index")
    chain = chain_folder(
        folder, holders=IMPORT_HOLDERS, blocks=IMPORT_LAPS * IMPORT_LAP_BLOCKS
    )
    other = chain.with_name(f"{chain.name}-unindexed")
    other.symlink_to(chain)
    with (
        racer("bench.import_unindexed", other, BULK_BATCH) as without,
        racer("bench.import_ours", chain, BULK_BATCH) as ours,
    ):
        laps = [
            (
                IMPORT_LAP_BLOCKS / without.run(IMPORT_LAP_BLOCKS).seconds,
                IMPORT_LAP_BLOCKS / ours.run(IMPORT_LAP_BLOCKS).seconds,
            )
            for _ in range(IMPORT_LAPS)
        ]
    before, after = [lap[0] for lap in laps], [lap[1] for lap in laps]
    return [
        Row("reads", "import without the log index", median(before), "blocks/s"),
        Row(
            "reads",
            "import with the log index",
            median(after),
            "blocks/s",
            median_ratio(after, before),
            "without the log index",
            ">= 0.95",
        ),
    ]


def _chain(folder: Path) -> tuple[TokenChain, Signer]:
    """Build a chain, and return the receiver of one transfer in each small block."""
    signers = holders_of(HOLDERS)
    receiver, others = signers[0], signers[1:]
    genesis = genesis_of(signers)
    built = ChainBuilder(genesis)
    chance = random.Random(HOLDERS)
    for _ in range(BLOCKS):
        _transfer(built, chance, others, receiver)
        for _ in range(TRANSFERS - 1):
            _transfer(built, chance, others, chance.choice(others))
        built.block()
    for _ in range(FULL_TRANSFERS):
        _transfer(built, chance, others, chance.choice(others))
    built.block()
    folder.mkdir(parents=True, exist_ok=True)
    chain = in_folder(folder)
    chain.genesis_path.write_text(json.dumps(genesis))
    chain.chain_path.write_bytes(built.rlp())
    return chain, receiver


def _transfer(
    built: ChainBuilder, chance: random.Random, senders: Sequence[Signer], to: Signer
) -> None:
    data = call_data("transfer(address,uint256)", to.address, 1)
    built.send(chance.choice(senders), Address(TOKEN), data, gas=TRANSFER_GAS)


def _add_rows(count: int) -> None:
    """Add rows of an unused contract to the index of the chain's blocks.

    Their positions follow those of the blocks' own logs. No receipt has these logs, so
    no answer contains them.
    """
    with importer_connection() as connection:
        connection.execute(
            "INSERT INTO nodeapi_log (network_id, position, block_number,"
            " transaction_index, address, event, topic0, topic1, topic2)"
            " SELECT network.id, (n %% %(blocks)s + 1 << %(bits)s) + 1000 + n / %(blocks)s,"
            "  n %% %(blocks)s + 1, 0, %(address)s, %(event)s, %(topic)s,"
            "  hashtextextended((n %% 9973)::text, 1),"
            "  hashtextextended((n %% 9967)::text, 2)"
            " FROM networks_network network, generate_series(0, %(count)s - 1) AS n"
            " WHERE network.slug = %(slug)s ORDER BY 2",
            {
                "slug": SLUG,
                "count": count,
                "blocks": BLOCKS,
                "bits": POSITION_BITS,
                "address": key(CONTRACT),
                "event": event_key(CONTRACT, [TRANSFER]),
                "topic": key(TRANSFER),
            },
        )
