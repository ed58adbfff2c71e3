"""Concurrently metered calls of several processes are counted once in every tier."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from keys.models import DailyUse, Span, UsageBucket, UsageTotal
from keys.services import get_or_create_customer, issue_key
from nodeapi.node import database_conninfo
from tests.support.rows import make_network
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parent.parent.parent
SUMS = ("calls", "credits", "duration_us", "bytes_out")

Sums = dict[tuple[Any, ...], list[int]]


def summed(rows: list[list[Any]], by: Any) -> Sums:
    """Return the four sums of rows, grouped by a function of their names."""
    sums: Sums = defaultdict(lambda: [0] * len(SUMS))
    for key, network, method, outcome, minute, *counts in rows:
        found = sums[by(key, network, method, outcome, minute)]
        found[:] = [a + b for a, b in zip(found, counts, strict=True)]
    return dict(sums)


def stored(model: Any, span: Span, *names: str) -> Sums:
    """Return the rows of a tier from the database."""
    rows = model.objects.filter(span=span)
    found = rows.values_list(*names, "start", *SUMS, "latencies")
    for row in found:
        assert sum(row[-1]) == row[len(names) + 1]  # a call is in one bucket
    return {row[: len(names) + 1]: list(row[len(names) + 1 : -1]) for row in found}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tiers_are_equal_in_every_process(seed: int) -> None:
    networks = [str(make_network(slug).pk) for slug in ("alpha", "beta")]
    owner = get_or_create_customer(email="o@example.org")
    keys = [str(issue_key(owner=owner).api_key.pk) for _ in range(5)]
    command = [sys.executable, "-m", "tests.support.metering_load"]
    command += [database_conninfo()]
    processes = [
        subprocess.Popen(
            [*command, str(10 * seed + n), "40", ",".join(keys), ",".join(networks)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        for n in range(2)
    ]
    metered = [
        row
        for process in processes
        for row in json.loads(process.communicate(timeout=PATIENCE_SECONDS)[0])
    ]

    for span in Span:

        def start(minute: int, span: int = span.value) -> datetime:
            return datetime.fromtimestamp(minute // span * span, UTC)

        by_key = summed(metered, lambda *r: (*r[:4], start(r[4])))
        names = ("api_key_id", "network_id", "method", "outcome")
        assert stored(UsageBucket, span, *names) == by_key
        together = summed(metered, lambda *r: (*r[1:4], start(r[4])))
        assert stored(UsageTotal, span, *names[1:]) == together

    days = summed(metered, lambda *r: (r[0], start(r[4]).date()))
    failed = summed(
        [row for row in metered if row[3] != "ok"],
        lambda *r: (r[0], start(r[4]).date()),
    )
    assert {
        (use.api_key_id, use.day): (use.calls, use.failed, use.credits)
        for use in DailyUse.objects.all()
    } == {
        key: (sums[0], failed.get(key, [0])[0], sums[1]) for key, sums in days.items()
    }
