"""Charts of the last day's imports: duration of each phase, and lag."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from django.db import connection

from evm.headers import decode_header
from keys.charts.plots import Plot, Series, lines
from keys.charts.windows import Window
from keys.charts.words import duration
from networks.models import Network

STEP = timedelta(minutes=15)
COUNT = 96
"""The length of a bin, and the number of bins: one day."""

PHASES = ("fetch", "execute", "commit")

MAX_SAMPLES = 1_000
"""Maximum number of blocks whose lag is drawn. If a day has more, blocks are sampled evenly,
because each block's header has to be decoded for its timestamp."""

_BINS = """
    SELECT floor(extract(epoch FROM at - %(start)s) / %(seconds)s)::int AS bin,
        count(*), avg(fetch_ms), avg(execute_ms), avg(commit_ms)
    FROM nodeapi_importtiming
    WHERE network_id = %(network)s AND at >= %(start)s AND at < %(end)s
    GROUP BY bin
"""

_SAMPLES = """
    SELECT timing.at, block.header
    FROM nodeapi_importtiming timing JOIN nodeapi_block block
        ON block.network_id = timing.network_id AND block.number = timing.number
        AND block.is_canonical
    WHERE timing.network_id = %(network)s AND timing.at >= %(start)s
        AND timing.at < %(end)s AND timing.number %% %(every)s = 0
    ORDER BY timing.at DESC LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class _Bin:
    """Imports of one bin. phases: mean duration of each of PHASES, in microseconds."""

    blocks: int
    phases: tuple[float, ...]


def import_charts(network: Network, now: datetime) -> list[Plot]:
    """Return the charts of a network. The list is empty if nothing was imported."""
    window = Window.until(now, STEP, COUNT)
    place = {"network": network.pk, "start": window.start, "end": window.end}
    bins = _bins(window, place)
    if not bins:
        return []
    blocks = sum(one.blocks for one in bins.values())
    lags = _lags(window, place, blocks)
    return [_phases(window, bins, blocks), *([_lag(window, lags)] if lags else [])]


def _bins(window: Window, place: dict[str, Any]) -> dict[int, _Bin]:
    with connection.cursor() as cursor:
        cursor.execute(_BINS, {**place, "seconds": window.step.total_seconds()})
        return {
            number: _Bin(blocks, tuple(1000 * phase for phase in phases))
            for number, blocks, *phases in cursor
        }


def _lags(window: Window, place: dict[str, Any], blocks: int) -> dict[int, list[float]]:
    """Return the lags of each bin's sampled blocks, in microseconds."""
    lags: dict[int, list[float]] = defaultdict(list)
    every = -(-blocks // MAX_SAMPLES)
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLES, {**place, "every": every, "most": 2 * MAX_SAMPLES})
        for at, header in cursor:
            lag = at.timestamp() - decode_header(bytes(header)).timestamp
            lags[window.place(at)].append(max(0.0, 1_000_000 * lag))
    return lags


def _phases(window: Window, bins: Mapping[int, _Bin], blocks: int) -> Plot:
    """Draw the mean duration of each phase of a block's import."""
    series = [
        Series(
            phase,
            f"series-{place + 1}",
            [bins[n].phases[place] if n in bins else None for n in range(window.count)],
        )
        for place, phase in enumerate(PHASES)
    ]
    means = [
        sum(one.blocks * one.phases[place] for one in bins.values()) / blocks
        for place in range(len(PHASES))
    ]
    figures = [duration(mean) for mean in means]
    return lines("phases", "Mean import time of a block", window, series, figures)


def _lag(window: Window, lags: Mapping[int, list[float]]) -> Plot:
    """Draw the time from a block's timestamp until the block was visible here."""
    places = range(window.count)
    series = [
        Series(
            "mean", "line-50", [fmean(lags[n]) if n in lags else None for n in places]
        ),
        Series(
            "longest", "line-95", [max(lags[n]) if n in lags else None for n in places]
        ),
    ]
    known = [lag for each in lags.values() for lag in each]
    figures = [duration(fmean(known)), duration(max(known))]
    return lines("lag", "Lag behind the block's timestamp", window, series, figures)
