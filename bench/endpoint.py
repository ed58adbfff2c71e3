"""Throughput and latency of the endpoint, compared with a minimal ASGI application.

Three servers run at the same time, each as one process: the minimal application (the
ceiling, see `bench.ceiling`), the service with a filled cache ("hot"), and the service
without cache ("cold": every answer is read from PostgreSQL). In each round, every server
gets the same load in turn. A ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

from django.db import connection

from bench.ceiling import SMALLEST
from bench.keys import new_key
from bench.loadgen import Job, LoadFailed, loadgen
from bench.questions import (
    FULL_BLOCKS,
    FULL_TRANSFERS,
    SMALL_BLOCKS,
    SMALL_TRANSFERS,
    Case,
    cases,
    our_subject,
)
from bench.rows import Row, median_ratio
from bench.servers import (
    CEILING,
    SERVICE,
    Measured,
    Target,
    in_turn,
    rate_rows,
    serving,
    serving_ceiling,
    split_cores,
)
from bench.token_chain import build_and_import
from bench.turns import Say, rounds
from keys.limiter.gcra import MAX_RATE

SLUG = "bench-endpoint"
HOLDERS = 1_000

PASSES = 4
ROUNDS = 3
"""Rounds of a case in each pass."""
SECONDS = 0.25
"""Duration of a round. Rounds are short, many, and spread over time, because other
load on the machine changes within seconds. A median of nine ratios tolerates four
outliers."""
CONNECTIONS = (16, 64)

WORKER_ROUNDS = 5
WORKER_SECONDS = 1.0

REQUIRED_RATES = {"hot": ">= 1.0", "cold": ">= 0.55"}
REQUIRED_P99 = "<= 2"
P99_CONNECTIONS = 64
REQUIRED_WORKERS = ">= 1.3"


@dataclass(slots=True)
class Loads:
    """The results of one case with one number of connections: a list for each server."""

    of: dict[str, list[Measured]] = field(default_factory=lambda: defaultdict(list))
    """By the target's name."""

    def series(self, target: str, figure: str) -> list[float]:
        """Return a figure's value in each round. figure: a field of `Measured`."""
        return [getattr(measured, figure) for measured in self.of[target]]

    def median(self, target: str, figure: str) -> float:
        """Return the median of a figure over all rounds."""
        return median(self.series(target, figure))

    def ratio(self, target: str, figure: str) -> float:
        """Return the median ratio of a figure to the ceiling's figure."""
        return median_ratio(self.series(target, figure), self.series(CEILING, figure))


def endpoint(folder: Path, say: Say) -> list[Row]:
    """Measure every case hot and cold, beside the ceiling."""
    path = prepare(folder, say)
    with connection.cursor() as cursor:
        # So that PostgreSQL does not do it during a measurement.
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")
    asked = cases(our_subject(SLUG))
    loads: dict[tuple[str, int], Loads] = defaultdict(Loads)
    _, generator_core = split_cores()
    with loadgen(generator_core) as generator, hot_and_cold() as targets:
        sizes = [answer_size(targets[1].port, path, case) for case in asked]
        for number in rounds(PASSES):
            say(f"endpoint: pass {number} of {PASSES}")
            for i, connections in product(range(len(asked)), CONNECTIONS):
                jobs = []
                for target in targets:
                    its_path = f"/{sizes[i]}" if target.name == CEILING else path
                    requests = asked[i].requests(its_path)
                    job = Job(target.port, requests, connections, SECONDS)
                    jobs.append((target, job))

                def run_round(
                    jobs: list[tuple[Target, Job]] = jobs,
                ) -> list[tuple[str, Measured]]:
                    return [
                        (each.name, each.load(generator, job)) for each, job in jobs
                    ]

                if not settle(run_round):
                    say(
                        "endpoint: the loads have not settled; their figures may be too low"
                    )
                for _ in range(ROUNDS):
                    for name, measured in run_round():
                        loads[asked[i].name, connections].of[name].append(measured)
    rows = []
    for i, connections in product(range(len(asked)), CONNECTIONS):
        here = loads[asked[i].name, connections]
        start = f"{asked[i].name}, {connections} connections"
        name = f"{start}, ceiling of {sizes[i]:,} bytes"
        rows += server_rows("endpoint", name, here, CEILING)
        p99 = REQUIRED_P99 if connections == P99_CONNECTIONS else None
        for target_name, rate in REQUIRED_RATES.items():
            required = {"rate": rate, "p99_ms": p99}
            name = f"{start}, {target_name}"
            rows += server_rows("endpoint", name, here, target_name, required)
    return rows


def workers(folder: Path, say: Say) -> list[Row]:
    """Compare two worker processes with one. No process is pinned to a core."""
    path = prepare(folder, say)
    case = blocks_by_hash()
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(os.sched_getaffinity(0)))
        jobs = {}
        for count, name in ((1, "1 worker"), (2, "2 workers")):
            target = stack.enter_context(serving(name, SERVICE, workers=count))
            job = Job(target.port, case.requests(path), 64, WORKER_SECONDS)
            jobs[name] = target, job
        found = in_turn(generator, jobs, WORKER_ROUNDS)
    return rate_rows("workers", f"{case.name}, 64 connections", found, REQUIRED_WORKERS)


def prepare(folder: Path, say: Say) -> str:
    """Import the chain. Return a URL path with a new key."""
    say("builds and imports its chain")
    blocks = [f"{SMALL_BLOCKS}x{SMALL_TRANSFERS}", f"{FULL_BLOCKS}x{FULL_TRANSFERS}"]
    build_and_import(folder, SLUG, holders=HOLDERS, blocks=blocks)
    # The key is charged like any other, but its rate is never exceeded.
    return f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"


def blocks_by_hash() -> Case:
    """Return the requests for small blocks by their hashes."""
    return next(
        case for case in cases(our_subject(SLUG)) if case.name.endswith("hashes")
    )


@contextmanager
def hot_and_cold() -> Iterator[tuple[Target, Target, Target]]:
    """Run the ceiling, the service with a cache, and the service without one."""
    core, _ = split_cores()
    with (
        serving_ceiling(core) as ceiling,
        serving("hot", SERVICE, cores=core) as hot,
        serving("cold", SERVICE, "bench.cold_settings", core) as cold,
    ):
        yield ceiling, hot, cold


def server_rows(
    bench: str,
    name: str,
    loads: Loads,
    target: str,
    required: dict[str, str | None] | None = None,
) -> list[Row]:
    """Return rate, p50, p99 and processor time of a case on one server.

    required: requirements by the names of the figures.
    """
    ratios: dict[str, Any] = {}
    if target != CEILING:
        figures = ("rate", "p99_ms", "processor_seconds")
        ratios = {figure: (loads.ratio(target, figure), CEILING) for figure in figures}
    return [
        Row(
            bench,
            name,
            loads.median(target, figure) * scale,
            unit,
            *ratios.get(figure, (None, None)),
            (required or {}).get(figure),
        )
        for figure, scale, unit in (
            ("rate", 1, "requests/s"),
            ("p50_ms", 1, "ms p50"),
            ("p99_ms", 1, "ms p99"),
            ("processor_seconds", 10**6, "µs of processor"),
        )
    ]


def answer_size(port: int, path: str, case: Case) -> int:
    """Return the mean size of a case's answers in bytes."""
    connection = HTTPConnection("127.0.0.1", port)
    sizes = []
    for body in case.bodies[:20]:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        sizes.append(len(response.read()))
        if response.status != 200:
            raise LoadFailed(f"{case.name} was answered with {response.status}")
    connection.close()
    return max(round(mean(sizes)), SMALLEST)


MEMINFO = Path("/proc/meminfo")

_STILL_KIB = 16 * 1024
"""A round that allocates less new memory than this counts as warm."""

_STILL_ROUNDS = 2
"""Consecutive warm rounds needed. A single one can be caused by another process that
frees memory."""

MAX_SECONDS = 5.0
"""Time limit. A load that allocates memory for longer does so for another reason."""


def settle(run_round: Callable[[], object]) -> bool:
    """Run unmeasured rounds of a load until they allocate no more memory.

    Return whether this happened within MAX_SECONDS. If the page cache fills all memory,
    hardly any can be allocated, and this ends early.
    """
    deadline = time.monotonic() + MAX_SECONDS
    least = _free_kib()
    still = 0
    while time.monotonic() < deadline:
        run_round()
        free = _free_kib()
        still = still + 1 if least - free < _STILL_KIB else 0
        least = min(least, free)
        if still == _STILL_ROUNDS:
            return True
    return False


def _free_kib() -> int:
    """Return the free memory in KiB: neither used, nor cache, nor in a core's list."""
    free = next(
        line for line in MEMINFO.read_text().splitlines() if line.startswith("MemFree:")
    )
    return int(free.split()[1])
