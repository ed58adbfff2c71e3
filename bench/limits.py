"""The cost of rate limits: the same requests with unlimited and with limited keys.

The server has a core of its own. Redis and PostgreSQL are not pinned to a core.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.endpoint import SERVICE, SLUG, Say, prepare, serving, split_cores
from bench.keys import new_key
from bench.loadgen import Job, loadgen
from bench.questions import cases, our_subject
from bench.rows import Row, median_ratio
from keys.limiter.gcra import MAX_RATE

ROUNDS = 11
SECONDS = 0.4
CONNECTIONS = (16, 64)
REQUIRED = ">= 0.9"

NONE = "without limits"
LIMITS = {
    NONE: {},
    "1,000,000 credits/s": {"credits_per_second": MAX_RATE},
    "200,000 credits/s, burst of 3,000": {
        "credits_per_second": 200_000,
        "burst": 3_000,
    },
}
"""Limits above the load, so that no request is rejected. A smaller burst means
smaller leases."""


def limits(folder: Path, say: Say) -> list[Row]:
    """Compare the throughput of keys with limits with that of an unlimited key."""
    prepare(folder, say)
    paths = {name: f"/{SLUG}/v3/{new_key(**terms)}" for name, terms in LIMITS.items()}
    case = next(
        case for case in cases(our_subject(SLUG)) if case.name.endswith("hashes")
    )
    server_core, generator_core = split_cores()
    rates: dict[tuple[str, int], list[float]] = {}
    with ExitStack() as stack:
        generator = stack.enter_context(loadgen(generator_core))
        target = stack.enter_context(serving("limits", SERVICE, cores=server_core))
        for number in range(ROUNDS):
            say(f"limits: round {number + 1} of {ROUNDS}")
            for connections in CONNECTIONS:
                for name, path in paths.items():
                    job = Job(target.port, case.requests(path), connections, SECONDS)
                    rate = target.load(generator, job).rate
                    rates.setdefault((name, connections), []).append(rate)
    rows = []
    for (name, connections), found in rates.items():
        start = f"{case.name}, {connections} connections"
        ratio = median_ratio(found, rates[NONE, connections])
        beside = () if name == NONE else (ratio, NONE, REQUIRED)
        rows.append(
            Row("limits", f"{start}, {name}", median(found), "requests/s", *beside)
        )
    return rows
