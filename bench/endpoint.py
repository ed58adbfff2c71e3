"""How fast the endpoint answers, beside the ceiling of its own server.

Three servers stand at the same time, each one process: the ceiling, the service with
its cache filled ("hot"), and the service without cache ("cold": every answer from
PostgreSQL). The same load goes to each in turn, round after round; a ratio is the
median of the rounds' ratios. The servers share one core, the load generator has the
other; PostgreSQL is free to run on both.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
    our_subject,
)
from bench.rows import Row, median_ratio
from bench.settling import settle
from bench.token_chain import build_in_process, in_folder
from config import server
from keys.limiter.gcra import MAX_RATE

SLUG = "bench-endpoint"
HOLDERS = 1_000

PASSES = 3
ROUNDS = 3
"""Of a case in each pass."""
SECONDS = 0.25
"""Many short rounds at several times: what else the machine does comes and goes within
seconds, and a median of nine ratios bears four bad ones."""
CONNECTIONS = (16, 64)

WORKER_ROUNDS = 5
WORKER_SECONDS = 1.0

REQUIRED_RATES = {"hot": ">= 0.75", "cold": ">= 0.45"}
REQUIRED_P99 = "<= 3"
P99_CONNECTIONS = 64
REQUIRED_WORKERS = ">= 1.3"

CEILING = "ceiling"
ANVIL = "anvil"
SERVICE = "config.asgi:application"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a load came to."""

    rate: float
    """Requests a second."""
    p50_ms: float
    p99_ms: float
    processor_seconds: float
    """Of the server process, per request."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server under load."""

    name: str
    port: int
    pids: list[int]
    inner_port: int = 0
    """Of the first worker's metrics, 0 for none."""

    def load(self, generator: Loadgen, job: Job) -> Measured:
        """Have a load run, and see what processor time it takes here."""
        before = sum(map(processor_seconds, self.pids))
        load = generator.load(job)
        spent = sum(map(processor_seconds, self.pids)) - before
        # The load is without the first answer on each connection.
        answers = load.requests + job.connections
        return Measured(load.rate, load.p50_ms, load.p99_ms, spent / answers)


@dataclass(slots=True)
class Loads:
    """All loads of a case with one number of connections, round by round."""

    of: dict[str, list[Measured]] = field(default_factory=lambda: defaultdict(list))
    """By the target's name."""

    def series(self, target: str, figure: str) -> list[float]:
        """Return a figure of each round."""
        return [getattr(measured, figure) for measured in self.of[target]]

    def median(self, target: str, figure: str) -> float:
        """Return a figure of the middle round."""
        return median(self.series(target, figure))

    def ratio(self, target: str, figure: str) -> float:
        """Return a figure over the ceiling's."""
        return median_ratio(self.series(target, figure), self.series(CEILING, figure))


AllLoads = dict[tuple[str, int], Loads]
"""By case and connections."""


def endpoint(folder: Path, say: Say) -> list[Row]:
    """Measure every case hot and cold, then again beside a million storage rows."""
    path = prepare(folder, say)
    _tidy_up()
    rows = compare("endpoint", path, say, with_anvil=True)
    say("endpoint: 1,000,000 more storage rows")
    add_storage_rows(SLUG, 1_000_000)
    _tidy_up()
    return rows + compare("endpoint, 1,000,000 storage rows", path, say)


def workers(folder: Path, say: Say) -> list[Row]:
    """Compare two worker processes with one, nothing pinned."""
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
    """Import the chain, if that is not done yet, and return a path with a new key."""
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
    # It is charged like any other key, and never refused.
    return f"/{SLUG}/v3/{new_key(credits_per_second=MAX_RATE)}"


def _tidy_up() -> None:
    """Have PostgreSQL tidy up what was just written now, and not while it is measured."""
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
            stack.enter_context(serving(name, application, settings, server_core))
            for name, application, settings in (
                (CEILING, "bench.ceiling:application", "config.settings"),
                ("hot", SERVICE, "config.settings"),
                ("cold", SERVICE, "bench.cold_settings"),
            )
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
    """Measure a case on each server, round by round, once the kernel has settled."""

    def run_round() -> list[tuple[str, Measured]]:
        return [(target.name, target.load(generator, job)) for target, job in jobs]

    if not settle(run_round):
        say("endpoint: measures what has not settled")
    for _ in range(ROUNDS):
        for name, measured in run_round():
            loads.of[name].append(measured)


@contextmanager
def anvil_beside(say: Say) -> Iterator[list[tuple[Target, list[Case]]]]:
    """Run anvil with a chain of the same shape, if there is one; give it as a rival."""
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
    """Return the figures of a case on each server."""
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

    is_bound: whether something is required of it.
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
    """Return a batch's calls a second, beside the ceiling's for one call a request."""
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
    """Return the processor time that a process's threads have had.

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
    """Serve an application as `make run` would, on some cores.

    environ: additions to the environment.
    """
    listeners = server.listen("127.0.0.1", 0, workers)
    inner = server.listen("127.0.0.1", 0, 1) if with_metrics else []
    given = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, **(environ or {})}
    ports = [each.getsockname()[1] for each in (listeners[0], *inner)]
    with server.Server(listeners, given, application, inner=inner) as running:
        for pid in running.pids:
            if cores:
                os.sched_setaffinity(pid, cores)
        yield Target(name, ports[0], running.pids, ports[1] if inner else 0)


def split_cores() -> tuple[set[int], set[int]]:
    """Return a core for the servers and one for the load generator; one if there is."""
    cores: Sequence[int] = sorted(os.sched_getaffinity(0))
    return {cores[0]}, {cores[-1]}
