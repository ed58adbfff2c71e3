"""The cost of the request log (REQUEST_LOG) and of regular requests for metrics.

Services with different settings run at the same time and get the same load in turn.
Usage is counted by method with all settings, so metrics cost nothing until they are
requested.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import httpx

from bench.endpoint import SERVICE, SLUG, Say, Target, prepare, serving, split_cores
from bench.loadgen import Job, loadgen
from bench.questions import cases, our_subject
from bench.rows import Row, median_ratio

ROUNDS = 9
SECONDS = 0.4
CONNECTIONS = 16
SCRAPE_SECONDS = 1.0
"""Interval of requests for metrics. Prometheus usually requests them every 15 s."""

NONE = "no request log"
SERVICES = {
    NONE: {},
    "REQUEST_LOG=problems": {"REQUEST_LOG": "problems"},
    "REQUEST_LOG=all, JSON": {"REQUEST_LOG": "all", "LOG_FORMAT": "json"},
    "metrics asked for each second": {"METRICS": "1"},
}


def records(folder: Path, say: Say) -> list[Row]:
    """Compare services that log all requests, some requests or none."""
    path = prepare(folder, say)
    case = next(
        case for case in cases(our_subject(SLUG)) if case.name.endswith("hashes")
    )
    server_core, generator_core = split_cores()
    rates: dict[str, list[float]] = {name: [] for name in SERVICES}
    spent: dict[str, list[float]] = {name: [] for name in SERVICES}
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        targets = []
        for name, environ in SERVICES.items():
            target = stack.enter_context(
                serving(
                    name,
                    SERVICE,
                    cores=server_core,
                    environ=environ,
                    with_metrics="METRICS" in environ,
                )
            )
            stack.enter_context(_asked_for_metrics(target))
            targets.append(target)
        for number in range(ROUNDS):
            say(f"records: round {number + 1} of {ROUNDS}")
            for target in targets:
                requests = case.requests(path)
                job = Job(target.port, requests, CONNECTIONS, SECONDS)
                found = target.load(generator, job)
                rates[target.name].append(found.rate)
                spent[target.name].append(found.processor_seconds * 1e6)
    rows = []
    for name in SERVICES:
        start = f"{case.name}, {CONNECTIONS} connections, {name}"
        beside = () if name == NONE else (median_ratio(rates[name], rates[NONE]), NONE)
        rows.append(Row("records", start, median(rates[name]), "requests/s", *beside))
        rows.append(Row("records", start, median(spent[name]), "µs of processor"))
    return rows


@contextmanager
def _asked_for_metrics(target: Target) -> Iterator[None]:
    """Scrape the metrics of a service regularly, if it has any."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(SCRAPE_SECONDS):
            httpx.get(f"http://127.0.0.1:{target.inner_port}/metrics", timeout=30)

    asking = threading.Thread(target=ask)
    if target.inner_port:
        asking.start()
    try:
        yield
    finally:
        over.set()
        if target.inner_port:
            asking.join()
