"""Speed of stored traces, compared with the ceiling and with execution.

The three servers of `bench.endpoint` get requests for the traces of full blocks. For
comparison, this process computes the same traces without trace records: it reads the
state of the block's parent and executes all transactions with a tracer. It alternates
with the server that reads all answers from PostgreSQL.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from django.core.management import call_command

from bench.endpoint import (
    CEILING,
    SERVICE,
    AllLoads,
    Loads,
    Say,
    Target,
    answer_size,
    server_rows,
    serving,
    serving_ceiling,
    split_cores,
)
from bench.keys import new_key
from bench.loadgen import Job, loadgen
from bench.long_trace import LONG_SLUG, add_long_trace
from bench.questions import Case
from bench.rows import Row, median_ratio
from bench.token_chain import build_in_process, in_folder
from evm.execution import BlockExecution
from evm.headers import ZERO_HASH
from evm.tracers.recorder import Recorder
from evm.world import World
from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.replay import find_origin
from nodeapi.models import Block
from nodeapi.status.facts import newest_record_sizes

SLUG = "bench-traces"
HOLDERS, BLOCKS, TRANSFERS = 1_000, 20, 200

ROUNDS = 5
SECONDS = 0.4
CONNECTIONS = 16

EXECUTED_BLOCKS = 5

PINGS = 200
"""Number of small requests that are sent during a long response."""

REQUIRED_HOT = ">= 0.6"
REQUIRED_COLD = ">= 100"
REQUIRED_REPLAY = ">= 50"
REQUIRED_FIRST_BYTE_MS = "<= 50"
REQUIRED_TURN_MS = "<= 10"

BY_BLOCK = "debug_traceBlockByHash"
BY_TRANSACTION = "debug_traceTransaction"
REPLAY = "trace_replayBlockTransactions"
REPLAY_CASE = f"{REPLAY} of {TRANSFERS} transfers, trace and stateDiff"


@dataclass(frozen=True, slots=True)
class Spent:
    """The wall time and processor time of some work, in seconds."""

    seconds: float
    processor_seconds: float


def traces(folder: Path, say: Say) -> list[Row]:
    """Measure the time and memory of traces with short and long answers."""
    path, long_path, long_hash = prepare(folder, say)
    server_core, generator_core = split_cores()
    asked = cases()
    loads: AllLoads = defaultdict(Loads)
    laps: list[tuple[Spent, float]] = []
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        ceiling, hot, cold = targets = [
            stack.enter_context(serving_ceiling(server_core)),
            stack.enter_context(serving("hot", SERVICE, cores=server_core)),
            stack.enter_context(
                serving("cold", SERVICE, "bench.cold_settings", server_core)
            ),
        ]
        sizes = [answer_size(hot.port, path, case) for case in asked]
        for number in range(ROUNDS):
            say(f"traces: round {number + 1} of {ROUNDS}")
            for case, size in zip(asked, sizes, strict=True):
                for target in targets:
                    its_path = f"/{size}" if target is ceiling else path
                    requests = case.requests(its_path)
                    job = Job(target.port, requests, CONNECTIONS, SECONDS)
                    measured = target.load(generator, job)
                    loads[case.name, CONNECTIONS].of[target.name].append(measured)
            single = Job(cold.port, asked[0].requests(path), 1, SECONDS)
            p50_ms = generator.load(single).p50_ms
            laps.append((execute(), p50_ms))
        say("traces: a long answer")
        long_rows = [*long_answer_rows(hot, long_path, long_hash)]
    rows = []
    for case, size in zip(asked, sizes, strict=True):
        rows += case_rows(case, size, loads[case.name, CONNECTIONS])
    return [
        *rows,
        *execution_rows(laps, loads[asked[0].name, CONNECTIONS]),
        *replay_rows(laps, loads[REPLAY_CASE, CONNECTIONS]),
        *long_rows,
        *size_rows(),
    ]


def prepare(folder: Path, say: Say) -> tuple[str, str, str]:
    """Import the chains; return the path to each, and the hash of the long block."""
    say("traces: builds and imports its chains")
    build_in_process(folder / SLUG, holders=HOLDERS, blocks=[f"{BLOCKS}x{TRANSFERS}"])
    chain = in_folder(folder / SLUG)
    call_command(
        "import_chain", str(chain.chain_path), network=SLUG, genesis=chain.genesis_path
    )
    long_hash = add_long_trace(folder / LONG_SLUG)
    key = new_key(may_trace=True)
    return f"/{SLUG}/v3/{key}", f"/{LONG_SLUG}/v3/{key}", long_hash


def cases() -> list[Case]:
    """Return the trace requests for the full blocks."""
    blocks = Block.objects.filter(network__slug=SLUG, transaction_count=TRANSFERS)
    hashes = [f"0x{bytes(block.hash).hex()}" for block in blocks]
    transactions = [
        f"0x{bytes(transaction.hash).hex()}"
        for block in blocks
        for transaction in block.transactions.filter(index__lt=10)
    ]
    return [
        Case(
            f"{method} of {what}, {tracer}",
            [call(method, one, {"tracer": tracer}) for one in asked],
        )
        for method, what, asked in (
            (BY_BLOCK, f"{TRANSFERS} transfers", hashes),
            (BY_TRANSACTION, "a transfer", transactions),
        )
        for tracer in ("callTracer", "prestateTracer")
    ] + [
        Case(REPLAY_CASE, [call(REPLAY, one, ["trace", "stateDiff"]) for one in hashes])
    ]


def call(method: str, *params: object) -> bytes:
    """Return a JSON-RPC call of a method as JSON."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(request, separators=(",", ":")).encode()


def case_rows(case: Case, size: int, loads: Loads) -> list[Row]:
    """Return the rows of a case. Traces of blocks have a requirement if hot."""
    start = f"{case.name}, {CONNECTIONS} connections"
    rows = server_rows("traces", f"{start}, ceiling of {size:,} bytes", loads, CEILING)
    hot = REQUIRED_HOT if case.name.startswith(BY_BLOCK) else None
    for target, required in (("hot", hot), ("cold", None)):
        rate, *others = server_rows("traces", f"{start}, {target}", loads, target)
        ratio = rate.ratio, rate.ratio_to
        rows += [
            Row(rate.bench, rate.case, rate.value, rate.unit, *ratio, required),
            *others,
        ]
    return rows


def execute() -> Spent:
    """Trace full blocks by execution, and return the time spent."""
    spent = []
    with importer_connection() as connection:
        network_id = open_network(connection, SLUG)
        config = stored_config(network_id)
        blocks = Block.objects.filter(network_id=network_id, number__gt=0)
        for block in blocks[:EXECUTED_BLOCKS]:
            start, start_processor = time.perf_counter(), time.process_time()
            origin = find_origin(connection, network_id, config, bytes(block.hash))
            recorder = Recorder()
            execution = BlockExecution(
                origin.block.header,
                origin.fork,
                config,
                World(origin.state),
                origin.ancestor_hashes,
                lambda: ZERO_HASH,
                recorder,
            )
            execution.begin()
            for transaction in origin.block.transactions:
                execution.apply_transaction(transaction)
            if len(recorder.records) != TRANSFERS:
                raise RuntimeError("a transfer was not recorded")
            seconds = time.perf_counter() - start
            spent.append(Spent(seconds, time.process_time() - start_processor))
    return Spent(
        median(one.seconds for one in spent),
        median(one.processor_seconds for one in spent),
    )


def execution_rows(laps: list[tuple[Spent, float]], cold: Loads) -> list[Row]:
    """Return rows that compare reading a trace from the database with execution.

    laps: for each round, the time of an execution, and the p50 of a single client in
        milliseconds.

    The requirement applies to the processor time of our processes, without
    PostgreSQL's. The wall time of such short requests depends too much on other load.
    """
    executed = [spent.processor_seconds for spent, _ in laps]
    read = cold.series("cold", "processor_seconds")
    name = f"callTracer of {TRANSFERS} transfers"
    again, stored = f"{name}, executed again", f"{name}, read, cold"
    return [
        Row("traces", again, median(executed) * 1000, "ms of processor"),
        Row("traces", again, median(spent.seconds for spent, _ in laps) * 1000, "ms"),
        Row(
            "traces",
            stored,
            median(read) * 1000,
            "ms of processor",
            median_ratio(executed, read),
            "executed again / read",
            REQUIRED_COLD,
        ),
        Row("traces", stored, median(p50_ms for _, p50_ms in laps), "ms p50, alone"),
    ]


def replay_rows(laps: list[tuple[Spent, float]], loads: Loads) -> Iterator[Row]:
    """Yield rows that compare Parity's replays of blocks with execution.

    laps: for each round, the time of an execution. The requirement applies to results
    that are cached; others are computed from trace records.
    """
    executed = [spent.processor_seconds for spent, _ in laps]
    for target, required in (("hot", REQUIRED_REPLAY), ("cold", None)):
        spent = loads.series(target, "processor_seconds")
        yield Row(
            "traces",
            f"{REPLAY_CASE}, {target}",
            median(spent) * 1000,
            "ms of processor",
            median_ratio(executed, spent),
            "executed again / replayed",
            required,
        )


def long_answer_rows(target: Target, path: str, block_hash: str) -> Iterator[Row]:
    """Measure the first byte of a long answer, and small requests during its download."""
    body = call(BY_BLOCK, block_hash, {"tracer": "callTracer"})
    first_bytes, rates = [], []
    for _ in range(ROUNDS):
        first, seconds, size = download(target.port, path, body)
        first_bytes.append(first * 1000)
        rates.append(size / seconds / 2**20)
    ended = threading.Event()

    def keep_reading() -> None:
        while not ended.is_set():
            download(target.port, path, body)

    reader = threading.Thread(target=keep_reading)
    reader.start()
    try:
        small = call("eth_chainId")
        waits = sorted(download(target.port, path, small)[1] for _ in range(PINGS))
    finally:
        ended.set()
        reader.join()
    name = f"a trace of {size / 2**20:,.0f} MiB"
    yield Row(
        "traces",
        f"{name}, first byte",
        median(first_bytes),
        "ms",
        required=REQUIRED_FIRST_BYTE_MS,
    )
    yield Row("traces", f"{name}, whole", median(rates), "MiB/s")
    yield Row(
        "traces",
        f"eth_chainId beside {name}",
        waits[PINGS * 99 // 100] * 1000,
        "ms p99",
        required=REQUIRED_TURN_MS,
    )


def download(port: int, path: str, body: bytes) -> tuple[float, float, int]:
    """Return the seconds until the first and the last byte of a response, and its size."""
    connection = HTTPConnection("127.0.0.1", port)
    try:
        connection.connect()
        start = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        size = len(response.read(1))
        first = time.perf_counter() - start
        while data := response.read(2**18):
            size += len(data)
        return first, time.perf_counter() - start, size
    finally:
        connection.close()


def size_rows() -> Iterator[Row]:
    """Return the stored size of the token transfers' trace records."""
    sizes: Any = newest_record_sizes(Network.objects.get(slug=SLUG))
    each, block = sizes.total / sizes.transactions, sizes.total / BLOCKS
    yield Row("traces", "records of a token transfer", each, "bytes")
    yield Row("traces", f"records of a block of {TRANSFERS}", block, "bytes")
