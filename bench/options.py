"""The cost of rate limits, of the request log and of metrics.

Services or keys with different options get the same requests in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import httpx

from bench.endpoint import SLUG, blocks_by_hash, prepare
from bench.keys import new_key
from bench.loadgen import Job, loadgen
from bench.rows import Row
from bench.servers import SERVICE, Target, in_turn, rate_rows, serving, split_cores
from bench.turns import Say
from keys.limiter.gcra import MAX_RATE

ROUNDS = 11
SECONDS = 0.4
CONNECTIONS = 16
REQUIRED_WITH_LIMITS = ">= 0.9"
SCRAPE_SECONDS = 1.0
"""Interval of requests for metrics. Prometheus usually requests them every 15 s."""

LIMITS = {
    "without limits": {},
    "1,000,000 credits/s": {"credits_per_second": MAX_RATE},
    "200,000 credits/s, burst of 3,000": {
        "credits_per_second": 200_000,
        "burst": 3_000,
    },
}
"""Limits above the load, so that no request is rejected. A smaller burst means
smaller leases."""

SERVICES = {
    "no request log": {},
    "REQUEST_LOG=problems": {"REQUEST_LOG": "problems"},
    "REQUEST_LOG=all, JSON": {"REQUEST_LOG": "all", "LOG_FORMAT": "json"},
    "metrics asked for each second": {"METRICS": "1"},
}


def limits(folder: Path, say: Say) -> list[Row]:
    """Compare the throughput of keys with limits with that of an unlimited key."""
    prepare(folder, say)
    case = blocks_by_hash()
    server_core, generator_core = split_cores()
    with (
        loadgen(generator_core) as generator,
        serving("limits", SERVICE, cores=server_core) as target,
    ):
        jobs = {}
        for name, terms in LIMITS.items():
            requests = case.requests(f"/{SLUG}/v3/{new_key(**terms)}")
            jobs[name] = target, Job(target.port, requests, CONNECTIONS, SECONDS)
        found = in_turn(generator, jobs, ROUNDS)
    start = f"{case.name}, {CONNECTIONS} connections"
    return rate_rows("limits", start, found, REQUIRED_WITH_LIMITS)


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
