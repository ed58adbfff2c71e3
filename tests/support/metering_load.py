"""A process that meters calls at random moments, writes them and prints their totals.

`python -m tests.support.metering_load CONNINFO SEED FLUSHES KEYS NETWORKS`, the last two
as ids with commas. Prints one JSON array of (key, network, method, outcome, minute, calls,
credits, microseconds, bytes).
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import defaultdict

from keys.metering.meter import CLIENT_ERROR, FLUSH_SECONDS, LIMITED, OK, Meter

NEW_YEAR = 1_798_761_600
"""2027-01-01T00:00:00Z, where a minute, an hour and a day begin."""


async def run(conninfo: str, seed: int, flushes: int, *ids: list[int]) -> None:
    """Meter and flush. Raises: AssertionError if a flush fails."""
    chance = random.Random(seed)
    keys, networks = ids
    now = 0.0
    meter = Meter(conninfo, wall_clock=lambda: now)
    metered: defaultdict[tuple[object, ...], list[int]] = defaultdict(lambda: [0] * 4)
    for number in range(flushes):
        now = NEW_YEAR + chance.choice((-4000, -70, -5, 0, 70, 4000)) + number / 7
        minute = int(now - FLUSH_SECONDS / 2) // 60 * 60
        for _ in range(chance.randint(1, 30)):
            use = (
                chance.choice(keys),
                chance.choice(networks),
                chance.choice(("eth_call", "eth_chainId", "eth_getCode")),
                chance.choice((OK, LIMITED, CLIENT_ERROR)),
            )
            counts = (
                chance.randint(0, 80),
                chance.randint(0, 10**6),
                chance.randint(2, 99),
            )
            meter.book((0, *use), *counts)
            found = metered[*use, minute]
            metered[*use, minute] = [
                a + b for a, b in zip(found, (1, *counts), strict=True)
            ]
        await meter.flush()
    assert not meter.failed_flushes
    assert not meter.waiting
    json.dump([[*row, *counts] for row, counts in metered.items()], sys.stdout)


if __name__ == "__main__":
    conninfo, seed, flushes, *ids = sys.argv[1:]
    lists = ([int(number) for number in text.split(",")] for text in ids)
    asyncio.run(run(conninfo, int(seed), int(flushes), *lists))
