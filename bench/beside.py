"""The cost of traces on demand for imports and for requests without traces.

In every other lap, all trace workers are kept busy. In each lap, blocks are imported and
then blocks are requested by hash. The laps with and without traces are compared.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median

from django.conf import settings

from bench.importing import LAP_BLOCKS, TRANSFERS, chain_folder
from bench.keys import new_key
from bench.loadgen import Job, Loadgen, loadgen
from bench.questions import Case, call
from bench.racers import Racer, racer
from bench.rows import Row, median_ratio
from bench.servers import SERVICE, serving, split_cores
from bench.token_chain import build_and_import
from bench.turns import Say, rounds
from nodeapi.models import Block

SLUG = "bench-beside"
TRACED_BLOCKS, TRACED_TRANSFERS = 20, 120
HOLDERS = 1_002
"""Differs from the other parts' number, so that this part has a chain of its own."""

ROUNDS = 7
SECONDS = 0.5
CONNECTIONS = 16
MOST = 1.2
"""Maximum time of imports and requests beside traces, relative to the time without
traces."""

TRACER = "opcountTracer"
"""A JavaScript tracer that observes every instruction and returns a number."""


def beside(folder: Path, say: Say) -> list[Row]:
    """Measure imports and reads with and without busy trace workers."""
    say("beside: builds and imports its chains")
    blocks = [f"{TRACED_BLOCKS}x{TRACED_TRANSFERS}"]
    build_and_import(folder, SLUG, holders=HOLDERS, blocks=blocks)
    imported = chain_folder(
        folder, holders=HOLDERS, blocks=LAP_BLOCKS * (2 * ROUNDS + 1)
    )
    case = Case(
        "eth_getBlockByHash",
        [call("eth_getBlockByHash", each, False) for each in _hashes()],
    )
    paths = _paths(2 * settings.NODEAPI_TRACE_WORKERS)
    # In production, clients run on other machines. Without pinning, the scheduler moves
    # the generator to the server's core as soon as anything, even idle work, runs on
    # the other one.
    server_core, generator_core = split_cores()
    alone: list[tuple[float, float]] = []
    busy: list[tuple[float, float]] = []
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        ours = stack.enter_context(racer("bench.import_ours", imported))
        target = stack.enter_context(serving("beside", SERVICE, cores=server_core))
        job = Job(target.port, case.requests(paths[0]), CONNECTIONS, SECONDS)
        _lap(ours, generator, job)  # warm-up: reads the accounts and fills the cache
        done = 0
        for number in rounds(ROUNDS):
            say(f"beside: round {number} of {ROUNDS}")
            alone.append(_lap(ours, generator, job))
            with _tracing(target.port, paths) as finished:
                busy.append(_lap(ours, generator, job))
            done += len(finished)
    say(f"beside: {done} blocks of {TRACED_TRANSFERS} transfers traced concurrently")
    return [
        *_rows(
            "import", [lap[0] for lap in alone], [lap[0] for lap in busy], "ms/block"
        ),
        *_rows(case.name, [lap[1] for lap in alone], [lap[1] for lap in busy], "µs"),
    ]


def _hashes() -> list[str]:
    blocks = Block.objects.filter(network__slug=SLUG, number__gt=0)
    return [f"0x{bytes(block.hash).hex()}" for block in blocks]


def _paths(keys: int) -> list[str]:
    """Return URL paths, each with its own key, because the traces of a key are limited."""
    return [f"/{SLUG}/v3/{new_key(may_trace=True)}" for _ in range(keys)]


def _lap(ours: Racer, generator: Loadgen, job: Job) -> tuple[float, float]:
    """Return the milliseconds per imported block, and the microseconds per request."""
    import_seconds = ours.run(LAP_BLOCKS).seconds
    load = generator.load(job)
    return import_seconds * 1000 / LAP_BLOCKS, 1_000_000 / load.rate


@contextmanager
def _tracing(port: int, paths: list[str]) -> Iterator[list[int]]:
    """Request more traces than there are workers. Yield the list of response sizes."""
    hashes, turns, ended = _hashes(), count(), threading.Event()
    finished: list[int] = []
    begun = threading.Barrier(len(paths) + 1)

    def keep_tracing(path: str) -> None:
        is_first = True
        while not ended.is_set():
            if is_first:
                begun.wait()
            is_first = False
            # Never the same block twice at a time: equal jobs share one execution.
            block_hash = hashes[next(turns) % len(hashes)]
            finished.append(_trace(port, path, block_hash))

    threads = [threading.Thread(target=keep_tracing, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    begun.wait()
    try:
        yield finished
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _trace(port: int, path: str, block_hash: str) -> int:
    """Request the trace of a block, and return the response's size in bytes.

    Raises: RuntimeError.
    """
    connection = HTTPConnection("127.0.0.1", port)
    try:
        body = call("debug_traceBlockByHash", block_hash, {"tracer": TRACER})
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse().read()
    finally:
        connection.close()
    if len(json.loads(answer).get("result", ())) != TRACED_TRANSFERS:
        raise RuntimeError(f"a trace failed: {answer[:300]!r}")
    return len(answer)


def _rows(name: str, alone: list[float], busy: list[float], unit: str) -> Iterator[Row]:
    unit = unit if "/" in unit else f"{unit}/request"
    case = f"{name} of {TRANSFERS} transfers" if name == "import" else name
    yield Row("beside", f"{case}, alone", median(alone), unit)
    yield Row(
        "beside",
        f"{case}, beside busy trace workers",
        median(busy),
        unit,
        median_ratio(busy, alone),
        "alone",
        f"<= {MOST}",
    )
