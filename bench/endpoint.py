"""Throughput and latency of the endpoint, compared with a minimal ASGI application.

Three servers run at the same time, each as one process: the minimal application (the
ceiling, see `bench.ceiling`), the service with a filled cache ("hot"), and the service
without cache ("cold": every answer is read from PostgreSQL). In each round, every server
gets the same load in turn. A ratio is the median of the rounds' ratios. The servers
share one core, and the load generator has the other one. PostgreSQL may use both.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

from django.core.management import call_command
from django.db import connection

from bench import anvil
from bench.ceiling import SMALLEST
from bench.keys import new_key
from bench.loadgen import Job, LoadFailed, Loadgen, loadgen
from bench.million import add_storage_rows
from bench.questions import (
    FULL_BLOCKS,
    FULL_TRANSFERS,
    SMALL_BLOCKS,
    SMALL_TRANSFERS,
    Case,
    cases,
    http_request,
    our_subject,
)
from bench.rows import Row, median_ratio
from bench.settling import settle
from bench.token_chain import build_in_process, in_folder
from keys.limiter.gcra import MAX_RATE
from server import supervisor

SLUG = "bench-endpoint"
HOLDERS = 1_000

PASSES = 3
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

CEILING = "ceiling"
ANVIL = "anvil"
SERVICE = "config.asgi:application"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one load on one server."""

    rate: float
    """Requests per second."""
    p50_ms: float
    p99_ms: float
    processor_seconds: float
    """Processor time of the server process per request."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running server that receives load."""

    name: str
    port: int
    pids: list[int]
    inner_port: int = 0
    """Port of the first worker's metrics, 0 if there is none."""

    def load(self, generator: Loadgen, job: Job) -> Measured:
        """Run a load on this server, and measure the server's processor time."""
        before = sum(map(processor_seconds, self.pids))
        load = generator.load(job)
        spent = sum(map(processor_seconds, self.pids)) - before
        # The load is without the first answer on each connection.
        answers = load.requests + job.connections
        return Measured(load.rate, load.p50_ms, load.p99_ms, spent / answers)


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


AllLoads = dict[tuple[str, int], Loads]
"""By case and connections."""


def endpoint(folder: Path, say: Say) -> list[Row]:
    """Measure every case hot and cold, then again with a million more storage rows."""
    path = prepare(folder, say)
    _tidy_up()
    rows = compare("endpoint", path, say, with_anvil=True)
    say("endpoint: 1,000,000 more storage rows")
    add_storage_rows(SLUG, 1_000_000)
    _tidy_up()
    return rows + compare("endpoint, 1,000,000 storage rows", path, say)


def workers(folder: Path, say: Say) -> list[Row]:
    """Compare two worker processes with one. No process is pinned to a core."""
    path = prepare(folder, say)
    case = next(
        case for case in cases(our_subject(SLUG)) if case.name.endswith("hashes")
    )
    say(f"workers: {WORKER_ROUNDS} rounds")
    rates: dict[int, list[float]] = {1: [], 2: []}
    cores = os.sched_getaffinity(0)
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(cores))
        targets = {
            count: stack.enter_context(serving(f"{count}", SERVICE, workers=count))
            for count in rates
        }
        for _ in range(WORKER_ROUNDS):
            for count, target in targets.items():
                job = Job(target.port, case.requests(path), 64, WORKER_SECONDS)
                rates[count].append(target.load(generator, job).rate)
    name = f"{case.name}, 64 connections"
    ratio = median_ratio(rates[2], rates[1])
    return [
        Row("workers", f"{name}, 1 worker", median(rates[1]), "requests/s"),
        Row(
            "workers",
            f"{name}, 2 workers",
            median(rates[2]),
            "requests/s",
            ratio,
            "1 worker",
            REQUIRED_WORKERS,
        ),
    ]


def prepare(folder: Path, say: Say) -> str:
    """Import the chain unless it was imported before. Return a URL path with a new key."""
    chain = in_folder(folder / SLUG)
    if not chain.chain_path.exists():
        say("endpoint: builds and imports its chain")
        build_in_process(
            folder / SLUG,
            holders=HOLDERS,
            blocks=[
                f"{SMALL_BLOCKS}x{SMALL_TRANSFERS}",
                f"{FULL_BLOCKS}x{FULL_TRANSFERS}",
            ],
        )
        call_command(
            "import_chain",
            str(chain.chain_path),
            network=SLUG,
            genesis=chain.genesis_path,
        )
    # The key is charged like any other, but its rate is never exceeded.
    return f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"


def _tidy_up() -> None:
    """Vacuum and checkpoint now, so that PostgreSQL does not do it during a measurement."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")


def compare(bench: str, path: str, say: Say, *, with_anvil: bool = False) -> list[Row]:
    """Measure every case on every server."""
    server_core, generator_core = split_cores()
    loads: AllLoads = defaultdict(Loads)
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        targets = [
            stack.enter_context(serving_ceiling(server_core)),
            stack.enter_context(serving("hot", SERVICE, cores=server_core)),
            stack.enter_context(
                serving("cold", SERVICE, "bench.cold_settings", server_core)
            ),
        ]
        asked = cases(our_subject(SLUG))
        sizes = [answer_size(targets[1].port, path, case) for case in asked]
        rivals: list[tuple[Target, list[Case]]] = [(t, asked) for t in targets]
        if with_anvil:
            rivals += stack.enter_context(anvil_beside(say))
        for number in range(PASSES):
            say(f"{bench}: pass {number + 1} of {PASSES}")
            for i, connections in product(range(len(asked)), CONNECTIONS):
                where = {CEILING: f"/{sizes[i]}", ANVIL: "/"}
                jobs = []
                for target, its_cases in rivals:
                    requests = its_cases[i].requests(where.get(target.name, path))
                    job = Job(target.port, requests, connections, SECONDS)
                    jobs.append((target, job))
                take_turns(generator, jobs, loads[asked[i].name, connections], say)
    rows = []
    for (case, size), connections in product(
        zip(asked, sizes, strict=True), CONNECTIONS
    ):
        rows += case_rows(bench, case, size, connections, loads)
    return rows


def take_turns(
    generator: Loadgen, jobs: Sequence[tuple[Target, Job]], loads: Loads, say: Say
) -> None:
    """Run the servers' jobs in turn, round by round, after a warm-up (`bench.settling`).

    jobs: each server with its job. loads: receives the results.
    """

    def run_round() -> list[tuple[str, Measured]]:
        return [(target.name, target.load(generator, job)) for target, job in jobs]

    if not settle(run_round):
        say("endpoint: measures what has not settled")
    for _ in range(ROUNDS):
        for name, measured in run_round():
            loads.of[name].append(measured)


@contextmanager
def anvil_beside(say: Say) -> Iterator[list[tuple[Target, list[Case]]]]:
    """Run anvil with a chain of the same shape. Yield no target if it is not installed."""
    program = anvil.find()
    if program is None:
        say("endpoint: without anvil, which is neither on the PATH nor named by ANVIL")
        yield []
        return
    with ExitStack() as stack:
        rivals = []
        try:
            port, pid = stack.enter_context(anvil.running(program))
            rivals = [(Target(ANVIL, port, [pid]), cases(anvil.build_chain(port)))]
        except (anvil.AnvilFailed, OSError) as error:
            say(f"endpoint: without anvil: {error}")
        yield rivals


def case_rows(
    bench: str, case: Case, size: int, connections: int, loads: AllLoads
) -> list[Row]:
    """Return the rows of a case: the figures of each server."""
    here = loads[case.name, connections]
    start = f"{case.name}, {connections} connections"
    rows = server_rows(bench, f"{start}, ceiling of {size:,} bytes", here, CEILING)
    for target in REQUIRED_RATES:
        name = f"{start}, {target}"
        rows += server_rows(bench, name, here, target, is_bound=case.is_bound)
        if case.calls > 1:
            rows.append(_calls_row(bench, name, case, connections, target, loads))
    if ANVIL in here.of:
        rows += server_rows(bench, f"{start}, {ANVIL}", here, ANVIL)
    return rows


def server_rows(
    bench: str, name: str, loads: Loads, target: str, *, is_bound: bool = False
) -> list[Row]:
    """Return rate, p50, p99 and processor time of a case on one server.

    is_bound: whether the figures have to meet a requirement.
    """
    ratios: dict[str, Any] = {}
    required: dict[str, Any] = {}
    if target != CEILING:
        figures = ("rate", "p99_ms", "processor_seconds")
        ratios = {figure: (loads.ratio(target, figure), CEILING) for figure in figures}
    if is_bound:
        required["rate"] = REQUIRED_RATES[target]
        if name.endswith(f"{P99_CONNECTIONS} connections, {target}"):
            required["p99_ms"] = REQUIRED_P99
    return [
        Row(
            bench,
            name,
            loads.median(target, figure) * scale,
            unit,
            *ratios.get(figure, (None, None)),
            required.get(figure),
        )
        for figure, scale, unit in (
            ("rate", 1, "requests/s"),
            ("p50_ms", 1, "ms p50"),
            ("p99_ms", 1, "ms p99"),
            ("processor_seconds", 10**6, "µs of processor"),
        )
    ]


def _calls_row(
    bench: str,
    name: str,
    case: Case,
    connections: int,
    target: str,
    loads: AllLoads,
) -> Row:
    """Return a batch's calls per second, compared with the ceiling's single requests."""
    single = next(
        one
        for (one_name, count), one in loads.items()
        if count == connections and case.name.endswith(" " + one_name)
    )
    rates = loads[case.name, connections].series(target, "rate")
    calls = [rate * case.calls for rate in rates]
    ratio = median_ratio(calls, single.series(CEILING, "rate"))
    return Row(bench, name, median(calls), "calls/s", ratio, "ceiling, one a request")


def processor_seconds(pid: int) -> float:
    """Return the processor time that all threads of a process have used, in seconds.

    Source: https://docs.kernel.org/scheduler/sched-stats.html
    """
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 10**9


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


@contextmanager
def serving(
    name: str,
    application: str,
    settings: str = "config.settings",
    cores: set[int] | None = None,
    workers: int = 1,
    environ: Mapping[str, str] | None = None,
    with_metrics: bool = False,
) -> Iterator[Target]:
    """Run a server with the same supervisor as `make run`, pinned to processor cores.

    environ: additional environment variables.
    """
    listeners = supervisor.listen("127.0.0.1", 0, workers)
    inner = supervisor.listen("127.0.0.1", 0, 1) if with_metrics else []
    given = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, **(environ or {})}
    ports = [each.getsockname()[1] for each in (listeners[0], *inner)]
    with supervisor.Server(listeners, given, application, inner=inner) as running:
        for pid in running.pids:
            if cores:
                os.sched_setaffinity(pid, cores)
        yield Target(name, ports[0], running.pids, ports[1] if inner else 0)


@contextmanager
def serving_ceiling(cores: set[int] | None = None) -> Iterator[Target]:
    """Serve the minimal application with uvicorn, pinned to processor cores."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    descriptor = listener.fileno()
    with subprocess.Popen(
        [sys.executable, "-m", "bench.ceiling", str(descriptor)],
        pass_fds=[descriptor],
    ) as process:
        listener.close()
        try:
            _wait_for(port, process)
            if cores:
                os.sched_setaffinity(process.pid, cores)
            yield Target(CEILING, port, [process.pid])
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers."""
    request = http_request(f"/{SMALLEST}", b"").encode()
    while process.poll() is None:
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=1) as client,
        ):
            client.sendall(request)
            if client.recv(100):
                return
        time.sleep(0.05)
    raise RuntimeError("the ceiling's server did not start")


def split_cores() -> tuple[set[int], set[int]]:
    """Return the cores for the servers and for the load generator.

    With a single core, both are that core.
    """
    cores: Sequence[int] = sorted(os.sched_getaffinity(0))
    return {cores[0]}, {cores[-1]}
