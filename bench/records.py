"""The cost of the request log and of metrics.

Services with different settings get the same requests in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import httpx

from bench.endpoint import blocks_by_hash, prepare
from bench.loadgen import Job, loadgen
from bench.rows import Row
from bench.servers import SERVICE, Target, in_turn, rate_rows, serving, split_cores
from bench.turns import Say

ROUNDS = 11
SECONDS = 0.4
CONNECTIONS = 16
SCRAPE_SECONDS = 1.0
"""Interval of requests for metrics. Prometheus usually requests them every 15 s."""

SERVICES = {
    "no request log": {},
    "REQUEST_LOG=problems": {"REQUEST_LOG": "problems"},
    "REQUEST_LOG=all, JSON": {"REQUEST_LOG": "all", "LOG_FORMAT": "json"},
    "metrics asked for each second": {"METRICS": "1"},
}


def records(folder: Path, say: Say) -> list[Row]:
    """Compare services that log all requests, some requests or none."""
    path = prepare(folder, say)
    case = blocks_by_hash()
    requests = case.requests(path)
    server_core, generator_core = split_cores()
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        jobs = {}
        for name, environ in SERVICES.items():
            service = serving(
                name,
                SERVICE,
                cores=server_core,
                environ=environ,
                with_metrics="METRICS" in environ,
            )
            target = stack.enter_context(service)
            stack.enter_context(_asked_for_metrics(target))
            jobs[name] = target, Job(target.port, requests, CONNECTIONS, SECONDS)
        found = in_turn(generator, jobs, ROUNDS)
    start = f"{case.name}, {CONNECTIONS} connections"
    spent = [
        Row(
            "records",
            f"{start}, {name}",
            median(one.processor_seconds for one in series) * 1e6,
            "µs of processor",
        )
        for name, series in found.items()
    ]
    return [*rate_rows("records", start, found), *spent]


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
