"""Searches among a million logs, compared with geth's, and the cost of the log index.

geth searches in its own log index, which it builds when it starts. The processor time of
a search includes PostgreSQL's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from django.core.management import call_command
from django.db import connection as django_connection

from bench.endpoint import Target, split_cores
from bench.importing import BULK_BATCH, chain_folder
from bench.keys import new_key
from bench.loadgen import loadgen
from bench.log_chain import BLOCKS, FULL_TRANSFERS, HITS, write_log_chain
from bench.per_core import (
    OURS,
    ReadCase,
    Say,
    beside_geth,
    measured_rows,
    processor_seconds_of,
)
from bench.racers import racer
from bench.rows import Row, median_ratio
from bench.token_chain import TOKEN
from evm.signatures import keccak
from keys.limiter.gcra import MAX_RATE
from samples.signers import Signer

SLUG = "bench-logs"

TRANSFER = keccak(b"Transfer(address,address,uint256)")

IDLE_SECONDS = 1.0
INDEXING_SECONDS = 120

IMPORT_LAPS = 6
IMPORT_LAP_BLOCKS = 20
IMPORT_HOLDERS = 1_000


def logs(folder: Path, say: Say) -> list[Row]:
    """Measure searches, and imports with and without the index."""
    return [*_searches(folder, say), *_imports(folder, say)]


def _searches(folder: Path, say: Say) -> list[Row]:
    say("logs: builds and imports its chain")
    chain, receiver = write_log_chain(folder / SLUG)
    call_command(
        "import_chain",
        str(chain.chain_path),
        network=SLUG,
        genesis=chain.genesis_path,
    )
    with django_connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    path = f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"
    _, generator_core = split_cores()
    with (
        loadgen(generator_core) as generator,
        beside_geth(chain, path, folder / "logs-geth", say) as targets,
    ):
        for name, target in targets.items():
            _wait_until_idle(target)
            if target.name == OURS:
                pids = [*target.pids, _postgres_pid()]
                targets[name] = replace(target, pids=pids)
        rows = []
        for case, hits in _cases(receiver):
            for each, target in targets.items():
                _require_hits(target.port, each, case, hits)
            rows += measured_rows(case, targets, generator, say)
        return rows


def _cases(receiver: Signer) -> Iterator[tuple[ReadCase, int]]:
    """Yield searches, and the number of logs that each of them selects."""
    topic = "0x" + receiver.address.rjust(32, b"\0").hex()
    event = "0x" + TRANSFER.hex()
    token = "0x" + TOKEN.hex()
    full = hex(BLOCKS + 1)
    yield (
        _case(
            "address and topic over the whole chain, 100 hits in a million logs",
            {"fromBlock": "0x0", "address": token, "topics": [event, None, topic]},
            ">= 1",
        ),
        HITS,
    )
    yield (
        _case(
            "one block of 200 logs",
            {"fromBlock": full, "toBlock": full},
            ">= 5",
        ),
        FULL_TRANSFERS,
    )
    yield (
        _case(
            "one block of 200 logs, by address and event",
            {"fromBlock": full, "toBlock": full, "address": token, "topics": [event]},
            ">= 5",
        ),
        FULL_TRANSFERS,
    )


def _case(name: str, criteria: dict[str, Any], required: str) -> ReadCase:
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [criteria]}
    bodies = [json.dumps(call).encode()]
    return ReadCase(f"eth_getLogs, {name}", partial(list, bodies), required)


def _require_hits(port: int, path: str, case: ReadCase, hits: int) -> None:
    """Raise RuntimeError if a search does not select the expected number of logs."""
    (body,) = case.bodies()
    client = HTTPConnection("127.0.0.1", port)
    client.request("POST", path, body, {"Content-Type": "application/json"})
    answer = json.loads(client.getresponse().read())
    client.close()
    found = len(answer.get("result", ()))
    if found != hits:
        raise RuntimeError(f"{found} logs instead of {hits}: {str(answer)[:200]}")


def _postgres_pid() -> int:
    """Return the process id of PostgreSQL, whose children serve the connections."""
    with django_connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        (folder,) = cursor.fetchone()
    return int((Path(folder) / "postmaster.pid").read_text().split("\n", 1)[0])


def _wait_until_idle(target: Target) -> None:
    """Wait until a server without requests has finished its background work.

    geth does not report the progress of its log index. Raises: RuntimeError.
    """
    deadline = time.monotonic() + INDEXING_SECONDS
    while time.monotonic() < deadline:
        before = processor_seconds_of(target.pids)
        time.sleep(IDLE_SECONDS)
        if processor_seconds_of(target.pids) - before < IDLE_SECONDS / 20:
            return
    raise RuntimeError(f"{target.name} was busy for {INDEXING_SECONDS} s")


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
