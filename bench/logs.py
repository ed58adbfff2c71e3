"""Searches among a million logs, compared with geth's, and the cost of the log index.

geth searches in its own log index, which it builds when it starts. The processor time of
a search includes PostgreSQL's.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from django.db import connection as django_connection
from eth_typing import Address

from abi.encoding import call_data
from bench.importing import imports_in_turn, speed_rows
from bench.keys import new_key
from bench.loadgen import loadgen
from bench.per_core import (
    OURS,
    ReadCase,
    beside_geth,
    measured_rows,
)
from bench.questions import call
from bench.rows import Row
from bench.servers import Target, postgres_pid, processor_seconds_of, split_cores
from bench.token_chain import (
    TOKEN,
    TRANSFER_GAS,
    TokenChain,
    genesis_of,
    holders_of,
    import_chain,
    write_chain,
)
from bench.turns import Say
from evm.signatures import keccak
from keys.limiter.gcra import MAX_RATE
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer

SLUG = "bench-logs"

TRANSFER = keccak(b"Transfer(address,address,uint256)")

IDLE_SECONDS = 1.0
INDEXING_SECONDS = 120

IMPORT_LAPS = 5


def logs(folder: Path, say: Say) -> list[Row]:
    """Measure searches, and imports with and without the index."""
    found = _searches(folder, say)
    say("logs: imports with and without the log index")
    imports = imports_in_turn(folder, "--without", "logs", most_laps=IMPORT_LAPS)
    names = "import without the log index", "import with the log index"
    return [*found, *speed_rows("reads", names, imports, ">= 0.95")]


def _searches(folder: Path, say: Say) -> list[Row]:
    say("logs: builds and imports its chain")
    chain, receiver = write_log_chain(folder / SLUG)
    import_chain(chain, SLUG)
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
                pids = [*target.pids, postgres_pid()]
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
    bodies = [call("eth_getLogs", criteria)]
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


BLOCKS = 1_000
"""Blocks with logs of the emitter. The block of transfers follows them."""
EMITTED_LOGS = 1_000
"""Logs of the emitting contract in a block."""
HITS = 100
"""Transfers to the receiver."""
FULL_TRANSFERS = 200
"""Transfers of the last block."""

EMITTER = Address(b"\x71" * 20)
_EMITTER_CODE = assemble(
    """
    ; Emits logs with three topics: Emitted(uint256 indexed number, address indexed by).
    ;
    ;   input      the first log's number and the last one's, 32 bytes each

            PUSH 0x20 CALLDATALOAD PUSH 0 CALLDATALOAD          ; [last, number]
    loop:   CALLER DUP2 PUSH32 topic("Emitted(uint256,address)")
            PUSH 0 DUP1 LOG3                                    ; [last, number]
            PUSH 1 ADD DUP2 DUP2 GT ISZERO PUSH @loop JUMPI
            STOP
    """
)
_GAS_OF_LOG = 1_600
_GAS_OF_CALL = 30_000

_HOLDERS = 400


def write_log_chain(folder: Path) -> tuple[TokenChain, Signer]:
    """Build the chain and write its files. Return it, and the receiver."""
    receiver, *others = holders_of(_HOLDERS)
    genesis = genesis_of([receiver, *others])
    genesis["alloc"][f"0x{EMITTER.hex()}"] = {
        "balance": "0x0",
        "code": f"0x{_EMITTER_CODE.hex()}",
    }
    built = ChainBuilder(genesis)
    chance = random.Random(_HOLDERS)

    def transfer(to: Signer) -> None:
        data = call_data("transfer(address,uint256)", to.address, 1)
        built.send(chance.choice(others), Address(TOKEN), data, gas=TRANSFER_GAS)

    for number in range(BLOCKS):
        first = number * EMITTED_LOGS
        last = first + EMITTED_LOGS - 1
        built.send(
            chance.choice(others),
            EMITTER,
            first.to_bytes(32) + last.to_bytes(32),
            gas=EMITTED_LOGS * _GAS_OF_LOG + _GAS_OF_CALL,
        )
        if number % (BLOCKS // HITS) == 0:
            transfer(receiver)
        built.block()
    for _ in range(FULL_TRANSFERS):
        transfer(chance.choice(others))
    built.block()
    return write_chain(folder, genesis, built), receiver
