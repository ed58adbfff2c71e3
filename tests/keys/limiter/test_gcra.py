from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.limiter.gcra import (
    DAY,
    MAX_BURST,
    MAX_RATE,
    SECOND,
    Bucket,
    Limits,
    Verdict,
    debt,
    take,
)

NOON = 20_000 * DAY + DAY // 2


def test_full_bucket_gives_its_burst_and_no_more():
    limits = Limits(rate=10, burst=20)
    bucket, outcome = take(Bucket(), limits, NOON, needed=20)
    assert outcome == (Verdict.GIVEN, 20, 0)
    bucket, outcome = take(bucket, limits, NOON, needed=1)
    assert outcome == (Verdict.RATE, 0, SECOND // 10)


def test_refusal_is_none_after_the_wait_and_still_one_before():
    limits = Limits(rate=7, burst=20)
    bucket, _ = take(Bucket(), limits, NOON, needed=18)
    _, refused = take(bucket, limits, NOON, needed=5)
    assert refused.verdict is Verdict.RATE
    later = NOON + refused.wait
    assert take(bucket, limits, later - 1, needed=5)[1].verdict is Verdict.RATE
    assert take(bucket, limits, later, needed=5)[1].verdict is Verdict.GIVEN


def test_debt_is_taken_from_an_empty_bucket_and_paid_by_the_rate():
    limits = Limits(rate=10, burst=20)
    bucket, _ = take(Bucket(), limits, NOON, needed=20)
    bucket, outcome = take(bucket, limits, NOON, needed=0, returned=-50)
    assert outcome.credits == 0
    bucket, outcome = take(bucket, limits, NOON, needed=1)
    assert outcome == (Verdict.RATE, 0, 51 * SECOND // 10)
    later = NOON + outcome.wait
    assert take(bucket, limits, later, needed=1)[1].verdict is Verdict.GIVEN
    assert bucket.spent == 70


def test_lease_shrinks_towards_the_limit():
    limits = Limits(rate=1, burst=1000)
    bucket, leases = Bucket(), []
    while sum(leases) < limits.burst:
        bucket, outcome = take(bucket, limits, NOON, needed=1, lease=limits.lease)
        leases.append(outcome.credits)
    assert leases == sorted(leases, reverse=True)
    assert (leases[0], leases[-1]) == (62, 1)


@pytest.mark.parametrize(
    ("rate", "burst", "lease"),
    [
        (500, 1000, 62),  # a sixteenth
        (4000, 8000, 500),
        (20_000, 2000, 200),  # 10 ms
        (200_000, 3000, 1000),  # a third
        (1, 3, 0),
    ],
)
def test_lease_lasts_for_some_milliseconds_if_the_burst_bears_it(rate, burst, lease):
    assert Limits(rate, burst).lease == lease


def test_daily_quota_ends_with_the_day():
    limits = Limits(rate=1000, burst=1000, daily=1500)
    bucket, _ = take(Bucket(), limits, NOON, needed=1000)
    bucket, refused = take(bucket, limits, NOON + SECOND, needed=501)
    assert refused == (Verdict.QUOTA, 0, 0)
    bucket, _ = take(bucket, limits, NOON + SECOND, needed=500)
    assert bucket.spent == 1500
    bucket, outcome = take(bucket, limits, NOON + DAY // 2, needed=1)
    assert (outcome.credits, bucket.spent) == (1, 1)


def test_what_is_given_back_can_be_taken_again():
    limits = Limits(rate=10, burst=100, daily=100)
    bucket, _ = take(Bucket(), limits, NOON, needed=100)
    bucket, _ = take(bucket, limits, NOON, needed=0, returned=40)
    assert take(bucket, limits, NOON, needed=41)[1].verdict is Verdict.QUOTA
    assert take(bucket, limits, NOON, needed=40)[1].credits == 40


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": 0, "burst": 1},
        {"rate": MAX_RATE + 1, "burst": 1},
        {"rate": 1, "burst": 0},
        {"rate": 1, "burst": MAX_BURST + 1},
        {"rate": 1, "burst": 1, "daily": 0},
    ],
)
def test_limits_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError):
        Limits(**wrong)


limits = st.builds(
    Limits,
    rate=st.integers(1, 3000) | st.integers(1, MAX_RATE),
    burst=st.integers(1, 5000),
    daily=st.none() | st.integers(1, 20_000),
)
steps = st.lists(
    st.tuples(
        st.integers(0, 2 * SECOND),  # microseconds before the request
        st.integers(0, 2),  # the process
        st.integers(1, 300),  # credits
        st.booleans(),  # whether unused credits are returned first
        st.booleans(),  # whether the lease is filled up first
    ),
    max_size=60,
)


@settings(deadline=None)
@given(limits, steps)
def test_processes_with_leases_never_admit_more_than_the_bound(limits, steps):
    """The bound for any period is rate × time + burst + the leases at its beginning."""
    now, bucket = NOON, Bucket()
    held = [0, 0, 0]
    history = []
    for passed, process, cost, gives_back, fills_up in steps:
        now += passed
        returned = held[process] if gives_back else 0
        bucket, _ = take(bucket, limits, now, needed=0, returned=returned)
        held[process] -= returned
        before = list(held)
        room = limits.lease - held[process]
        if fills_up and room > 0:
            bucket, outcome = take(bucket, limits, now, needed=0, lease=room)
            held[process] += outcome.credits
        missing = cost - held[process]
        if missing > 0:
            bucket, outcome = take(
                bucket, limits, now, needed=missing, lease=limits.lease
            )
            held[process] += outcome.credits
        admitted = cost if held[process] >= cost else 0
        held[process] -= admitted
        assert held[process] <= max(limits.lease, before[process])
        history.append((now, admitted, sum(before)))
    for start in range(len(history)):
        since, _, reserve = history[start]
        spent = 0
        for moment, admitted, _ in history[start:]:
            spent += admitted
            # A burst is a whole number of microseconds, rounded up.
            most = limits.rate * (moment - since + 1) / SECOND + limits.burst + reserve
            assert spent <= most
    if limits.daily is not None and history:
        days = {moment // DAY for moment, _, _ in history}
        assert sum(spent for _, spent, _ in history) <= limits.daily * len(days)


cut_off_steps = st.lists(
    st.tuples(
        st.integers(0, 2 * SECOND),  # microseconds before the request
        st.integers(0, 2),  # the process
        st.integers(1, 300),  # credits
        st.booleans(),  # whether the shared bucket is out of reach
    ),
    max_size=60,
)


@settings(deadline=None)
@given(limits, cut_off_steps)
def test_process_that_is_cut_off_now_and_then_never_admits_more_than_its_bound(
    limits, steps
):
    """The bound for any period is rate × time + burst, for each process."""
    now, shared = NOON, Bucket()
    own = [Bucket()] * 3
    is_apart = [False] * 3
    histories = [[], [], []]
    for passed, process, cost, is_cut_off in steps:
        now += passed
        if is_cut_off:
            own[process], outcome = take(own[process], limits, now, needed=cost)
        else:
            missed = debt(own[process], now) if is_apart[process] else {}
            shared, outcome = take(shared, limits, now, needed=cost, **missed)
            assert shared.arrival >= own[process].arrival
            own[process] = shared
        is_apart[process] = is_cut_off
        histories[process].append((now, outcome.credits))
    for history in histories:
        for start, (since, _) in enumerate(history):
            spent = 0
            for moment, credits in history[start:]:
                spent += credits
                most = limits.rate * (moment - since + 1) / SECOND + limits.burst
                assert spent <= most
        if limits.daily is not None:
            days = {moment // DAY for moment, _ in history}
            assert sum(spent for _, spent in history) <= limits.daily * len(days)
