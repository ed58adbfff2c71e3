"""Speed of stored traces, compared with the ceiling and with execution.

The three servers of `bench.endpoint` get requests for the traces of full blocks. For
comparison, this process computes the same traces without trace records: it reads the
state of the block's parent and executes all transactions with a tracer. It alternates
with the server that reads all answers from PostgreSQL.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from bench.endpoint import Loads, answer_size, hot_and_cold, server_rows
from bench.keys import new_key
from bench.loadgen import Job, loadgen
from bench.questions import Case, call
from bench.rows import Row, median_ratio
from bench.servers import CEILING, Target, split_cores
from bench.token_chain import build_and_import, genesis_of, import_chain, write_chain
from bench.turns import Say, rounds
from evm.execution import BlockExecution
from evm.headers import ZERO_HASH
from evm.tracers.recorder import Recorder
from evm.world import World
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.replay import find_origin
from nodeapi.models import Block
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer

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


def traces(folder: Path, say: Say) -> list[Row]:
    """Measure the time and memory of traces with short and long answers."""
    path, long_path, long_hash = prepare(folder, say)
    _, generator_core = split_cores()
    asked = cases()
    loads: dict[str, Loads] = defaultdict(Loads)
    executed: list[float] = []
    with loadgen(generator_core) as generator, hot_and_cold() as targets:
        ceiling, hot, _ = targets
        sizes = [answer_size(hot.port, path, case) for case in asked]
        for number in rounds(ROUNDS):
            say(f"traces: round {number} of {ROUNDS}")
            for case, size in zip(asked, sizes, strict=True):
                for target in targets:
                    its_path = f"/{size}" if target is ceiling else path
                    requests = case.requests(its_path)
                    job = Job(target.port, requests, CONNECTIONS, SECONDS)
                    measured = target.load(generator, job)
                    loads[case.name].of[target.name].append(measured)
            executed.append(execute())
        say("traces: a long answer")
        long_rows = [*long_answer_rows(hot, long_path, long_hash)]
    rows = []
    for case, size in zip(asked, sizes, strict=True):
        rows += case_rows(case, size, loads[case.name])
    name = f"callTracer of {TRANSFERS} transfers, executed again"
    rows.append(Row("traces", name, median(executed) * 1000, "ms of processor"))
    for named, target_name, required in (
        (asked[0].name, "cold", REQUIRED_COLD),
        (REPLAY_CASE, "hot", REQUIRED_REPLAY),
    ):
        rows.append(executed_row(named, target_name, loads[named], executed, required))
    return [*rows, *long_rows]


def prepare(folder: Path, say: Say) -> tuple[str, str, str]:
    """Import the chains; return the path to each, and the hash of the long block."""
    say("traces: builds and imports its chains")
    blocks = [f"{BLOCKS}x{TRANSFERS}"]
    build_and_import(folder, SLUG, holders=HOLDERS, blocks=blocks)
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


def case_rows(case: Case, size: int, loads: Loads) -> list[Row]:
    """Return the rows of a case. Traces of blocks have a requirement if hot."""
    start = f"{case.name}, {CONNECTIONS} connections"
    rows = server_rows("traces", f"{start}, ceiling of {size:,} bytes", loads, CEILING)
    hot = REQUIRED_HOT if case.name.startswith(BY_BLOCK) else None
    for target, required in (("hot", hot), ("cold", None)):
        name = f"{start}, {target}"
        rows += server_rows("traces", name, loads, target, {"rate": required})
    return rows


def execute() -> float:
    """Trace full blocks by execution, and return the processor seconds of one."""
    spent = []
    with importer_connection() as connection:
        network_id = open_network(connection, SLUG)
        config = stored_config(network_id)
        blocks = Block.objects.filter(network_id=network_id, number__gt=0)
        for block in blocks[:EXECUTED_BLOCKS]:
            start = time.process_time()
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
            spent.append(time.process_time() - start)
    return median(spent)


def executed_row(
    case: str, target: str, loads: Loads, executed: list[float], required: str
) -> Row:
    """Return a row that compares a response with an execution of the block.

    executed: processor seconds of an execution in each round. PostgreSQL's time is not
    included. The wall time of such short requests depends too much on other load.
    """
    spent = loads.series(target, "processor_seconds")
    return Row(
        "traces",
        f"{case}, {target}",
        median(spent) * 1000,
        "ms of processor",
        median_ratio(executed, spent),
        "executed again",
        required,
    )


def long_answer_rows(target: Target, path: str, block_hash: str) -> Iterator[Row]:
    """Measure the first byte of a long answer, and small requests during its download."""
    body = call(BY_BLOCK, block_hash, {"tracer": "callTracer"})
    downloads = [download(target.port, path, body) for _ in range(ROUNDS)]
    size = downloads[0][2]
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
        1000 * median(first for first, _, _ in downloads),
        "ms",
        required=REQUIRED_FIRST_BYTE_MS,
    )
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


LONG_SLUG = "bench-long-trace"
CALLS = 160
"""Calls of the identity contract, whose output is as long as its input."""
CALL_BYTES = 2**14

_ECHO = b"\x71" * 20
_CODE = assemble(
    f"""
    PUSH 32 PUSH 32 PUSH {CALL_BYTES} CALLDATACOPY   ; []   something to send
    PUSH 0 CALLDATALOAD                              ; [calls left]
    next:
    PUSH 0 PUSH 0 PUSH {CALL_BYTES} PUSH 0           ; [calls left, out, in]
    PUSH 4 GAS STATICCALL POP                        ; [calls left]
    PUSH 1 SWAP1 SUB DUP1 PUSH @next JUMPI           ; [calls left - 1]
    STOP
    """
)


def add_long_trace(folder: Path) -> str:
    """Build and import the chain; return the hash of its block in hex."""
    caller = Signer("caller")
    genesis = genesis_of([caller])
    genesis["alloc"][f"0x{_ECHO.hex()}"] = {
        "balance": "0x0",
        "code": f"0x{_CODE.hex()}",
    }
    chain = ChainBuilder(genesis)
    chain.send(caller, _ECHO, CALLS.to_bytes(32, "big"), gas=2_000_000)
    block = chain.block()
    import_chain(write_chain(folder, genesis, chain), LONG_SLUG)
    return f"0x{block.header.hash.hex()}"
