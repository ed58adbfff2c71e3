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
from bench.loadgen import Job, Loadgen
from bench.questions import http_request
from bench.rows import Row, median_ratio
from bench.servers import (
    SERVICE,
    Target,
    processor_seconds_of,
    serving,
    split_cores,
)
from bench.serving_geth import GETH
from bench.token_chain import TokenChain
from bench.turns import Say, rounds

OURS = "portcullis"

ROUNDS = 5
SECONDS = 0.5
CONNECTIONS = 32


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


def measured_rows(
    case: ReadCase, targets: dict[str, Target], generator: Loadgen, say: Say
) -> list[Row]:
    """Return the rows of a case. targets: by URL path."""
    say(f"reads: {case.name}")
    found: dict[str, list[float]] = defaultdict(list)
    for number in rounds(ROUNDS + 1):
        bodies = case.bodies()
        for path, target in targets.items():
            requests = [http_request(path, body) for body in bodies]
            job = Job(target.port, requests, CONNECTIONS, SECONDS, probed=1)
            measured = _per_core(target, generator, job)
            if number > 1:  # the first round warms up
                found[target.name].append(measured)
    return per_core_rows(case.name, found, case.required)


def per_core_rows(case: str, found: dict[str, list[float]], required: str) -> list[Row]:
    """Return the requests per second of processor time of each server.

    found: one value for each round, by the server's name. Ours are compared with geth's.
    """
    rows = []
    for name, rates in found.items():
        compared: tuple[float, str, str] | tuple[()] = ()
        if name == OURS and GETH in found:
            compared = median_ratio(rates, found[GETH]), GETH, required
        unit = "requests/s per core"
        rows.append(Row("reads", f"{case}, {name}", median(rates), unit, *compared))
    return rows


def _per_core(target: Target, generator: Loadgen, job: Job) -> float:
    """Run a load on a server; return its requests per second of processor time."""
    before = processor_seconds_of(target.pids)
    load = generator.load(job)
    spent = processor_seconds_of(target.pids) - before
    # The load is without the first answer on each connection.
    return (load.requests + job.connections) / spent
