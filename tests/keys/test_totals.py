from __future__ import annotations

import asyncio

from keys.metering.latencies import BUCKETS
from keys.metering.meter import OK, Meter

NOWHERE = "host=/nowhere dbname=none"
LATENCIES = 3


def use(key, method="eth_chainId", outcome=OK):
    return (10 * key, key, 1, method, outcome)


def test_totals_sum_over_keys_and_survive_flushes_that_fail():
    async def scenario():
        meter = Meter(NOWHERE)
        meter.book(use(1), 1, 100, 50)
        meter.book(use(2), 2, 200, 60)
        meter.book(use(2, outcome="limited"), 0, 3, 70)
        before = meter.totals()
        await meter.flush()
        meter.book(use(1), 1, 100, 50)
        return before, meter

    before, meter = asyncio.run(scenario())
    after = meter.totals()
    assert set(before) == {(1, "eth_chainId", OK), (1, "eth_chainId", "limited")}
    assert before[1, "eth_chainId", OK][:LATENCIES] == [3, 300, 110]
    assert after[1, "eth_chainId", OK][:LATENCIES] == [4, 400, 160]
    assert sum(after[1, "eth_chainId", OK][LATENCIES:]) == 3
    assert len(after[1, "eth_chainId", OK]) == LATENCIES + BUCKETS
    assert meter.totals() == after
    assert (meter.flushes, meter.failed_flushes, meter.waiting) == (1, 1, 3)
    assert meter.flush_seconds > 0
