"""Processes that write and follow streams, during faults of all services.

Each subscriber reaches the current state within 2 s of the last fault, processes each
number of a stream once and in order, and never counts as verified for more than 2 s while
it lacks a change.
OUTBOX_MODEL_SEED repeats the commits and faults of a run, except for their exact times;
OUTBOX_MODEL_SECONDS makes it longer.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator

import pytest

from tests.outbox.model import history
from tests.outbox.model.cluster import Cluster, run_cluster
from tests.outbox.model.faults import Faults

MEMBERS = 3
SECONDS = float(os.environ.get("OUTBOX_MODEL_SECONDS", "5"))
SEED = os.environ.get("OUTBOX_MODEL_SEED") or str(secrets.randbelow(10**6))


@pytest.fixture(scope="module")
def services() -> Iterator[Cluster]:
    """PostgreSQL and Redis without members."""
    print(f"OUTBOX_MODEL_SEED={SEED} OUTBOX_MODEL_SECONDS={SECONDS:g}")
    with run_cluster(SEED) as running:
        yield running


def test_subscribers_reach_the_current_state_after_any_fault(services) -> None:
    services.start_members(MEMBERS, rate=0.4)
    faults = Faults(services, MEMBERS)
    faults.run(SECONDS)
    services.stop_writing()
    time.sleep(2 * history.BOUND_SECONDS)  # on a busy machine, some are late
    found, truth = _finish(services, faults.committed)
    print(len(found.processes), "processes,", len(truth.facts), "facts,", faults.counts)
    problems = history.problems(found, truth, services.outages)
    assert not problems, _report(services, problems)


def test_changes_take_effect_at_once_with_redis_and_in_time_without(services) -> None:
    services.start_members(MEMBERS, rate=0)
    times = [time.monotonic() + 0.4]
    time.sleep(1.2)
    times.append(time.monotonic())
    services.kill_redis()
    time.sleep(1)
    times.append(time.monotonic())
    services.redis.start()
    time.sleep(2.6)
    times.append(time.monotonic())
    services.stop_writing()
    time.sleep(1.2)  # a poll, because messages were lost
    found, truth = _finish(services, {})
    problems = history.problems(found, truth, [])
    assert not problems, _report(services, problems)
    medians = [
        _median(found, "with Redis", times[0], times[1] - 0.1),
        _median(found, "without Redis", times[1] + 0.1, times[2]),
        _median(found, "2 s after its restart", times[2] + 2, times[3]),
    ]
    # A machine that is busy adds to all of them; polls once a second add half a second.
    assert max(medians[0], medians[2]) < medians[1] - 0.2


def _median(found: history.History, name: str, begin: float, end: float) -> float:
    """Print the delays of changes that were committed in a time; return their median."""
    values = history.latencies(found, begin, end)
    median, late = (history.percentile(values, share) for share in (0.5, 0.99))
    print(
        f"{name}: {len(values)} changes, median {median * 1000:.1f} ms,"
        f" p99 {late * 1000:.1f} ms, last {values[-1] * 1000:.0f} ms"
    )
    return median


def _report(running: Cluster, problems: list[str]) -> str:
    first = "\n".join(problems[:20])
    return f"{len(problems)} problems with OUTBOX_MODEL_SEED={SEED}:\n{first}\n{running.errors()}"


def _finish(
    running: Cluster, written: dict[history.Fact, float]
) -> tuple[history.History, history.Truth]:
    """Stop the members. Return their history and the content of the database."""
    over = time.monotonic()
    incarnations = running.stop_members()
    with running.connect() as opened:
        rows = opened.execute(
            "SELECT stream, subject, number, false FROM outbox_entry UNION ALL"
            " SELECT stream, subject, number, is_lost FROM model_gone"
        ).fetchall()
        facts = opened.execute("SELECT stream, subject FROM model_fact").fetchall()
        pending = opened.execute("SELECT * FROM outbox_pending").fetchall()
    assert pending == []
    assert len(facts) == len(set(facts))
    assert set(facts) == {(row[0], row[1]) for row in rows if not row[3]}
    numbers = {(row[0], row[1]): row[2] for row in rows}
    return history.read(incarnations, over, written), history.Truth(numbers, set(facts))
