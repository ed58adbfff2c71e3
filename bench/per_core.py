"""Rates of reads, compared with geth's: requests per second of processor time.

The servers are pinned to one core and get their load in turn. The load generator has the
other core. A ratio compares requests per second of processor time, that of the worker
processes included, so that other load on the machine matters little. PostgreSQL's time is
not included. Without geth, there are no ratios.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import serving_geth
from bench.endpoint import SERVICE, Target, processor_seconds, serving, split_cores
from bench.loadgen import Job, Loadgen
from bench.questions import http_request
from bench.rows import Row, median_ratio
from bench.serving_geth import GETH
from bench.token_chain import TokenChain

OURS = "portcullis"

ROUNDS = 5
SECONDS = 1.0
CONNECTIONS = 32

Say = Callable[[str], None]


@contextmanager
def beside_geth(
    chain: TokenChain, path: str, folder: Path, say: Say
) -> Iterator[dict[str, Target]]:
    """Serve a chain by this service and by geth, and yield both servers by URL path.

    path: of our endpoint, with the network and a key. folder: for geth's files; it must
    not exist yet.
    """
    server_core, _ = split_cores()
    with ExitStack() as stack:
        ours = serving(OURS, SERVICE, cores=server_core)
        targets = {path: stack.enter_context(ours)}
        program = serving_geth.find()
        if program is None:
            say("reads: without geth, which is neither on the PATH nor named by GETH")
        else:
            rival = serving_geth.serving_geth(program, chain, folder, server_core)
            targets["/"] = stack.enter_context(rival)
        yield targets


@dataclass(frozen=True, slots=True)
class ReadCase:
    """One kind of request.

    bodies: returns the JSON-RPC requests of the next round.
    required: the requirement of the ratio to geth.
    """

    name: str
    bodies: Callable[[], Sequence[bytes]]
    required: str


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round."""

    rate: float
    """Requests per second."""
    p99_ms: float
    per_core: float
    """Requests per second of processor time."""


def measured_rows(
    case: ReadCase, targets: dict[str, Target], generator: Loadgen, say: Say
) -> list[Row]:
    """Return the rows of a case. targets: by URL path."""
    say(f"reads: {case.name}")
    found: dict[str, list[Round]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        bodies = case.bodies()
        for path, target in targets.items():
            requests = [http_request(path, body) for body in bodies]
            job = Job(target.port, requests, CONNECTIONS, SECONDS, probed=1)
            measured = _round(target, generator, job)
            if number:  # the first round warms up
                found[target.name].append(measured)
    rows = []
    for name, series in found.items():
        ratio = required = None
        if name == OURS and GETH in found:
            ours, others = ([one.per_core for one in found[n]] for n in (OURS, GETH))
            ratio, required = median_ratio(ours, others), case.required
        rows += [
            Row("reads", f"{case.name}, {name}", median(values), unit, *compared)
            for unit, values, compared in (
                (
                    "requests/s per core",
                    [one.per_core for one in series],
                    (ratio, None if ratio is None else GETH, required),
                ),
                ("requests/s", [one.rate for one in series], ()),
                ("ms p99", [one.p99_ms for one in series], ()),
            )
        ]
    return rows


def _round(target: Target, generator: Loadgen, job: Job) -> Round:
    """Run a load on a server."""
    before = processor_seconds_of(target.pids)
    load = generator.load(job)
    spent = processor_seconds_of(target.pids) - before
    # The load is without the first answer on each connection.
    answers = load.requests + job.connections
    return Round(load.rate, load.p99_ms, answers / spent)


def processor_seconds_of(pids: Sequence[int]) -> float:
    """Return the processor time of processes and of their children."""
    found = list(pids)
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return sum(map(processor_seconds, found))
