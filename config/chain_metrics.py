"""Metrics of the chains: heads, followers, imports, reorganisations and upstreams.

Followers are other processes. They write rows, which this module reads at most every
FRESH_SECONDS. All web processes therefore report the same values.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from config.gateway import LazyPart
from config.shared_result import SharedResult
from networks.masking import mask_url
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.statement import Statement

FRESH_SECONDS = 3.0
"""Time for which the rows are cached."""

DATABASE_SECONDS = 2.0
"""Timeout of the query."""

PHASES = ("fetch", "execute", "commit")

DEPTHS = (1, 2, 3, 5, 7, 10, 20, 50, 100)
"""Upper limits of the buckets of reorganisations."""

_NETWORK = ("network",)
_UPSTREAM = ("network", "upstream", "host")

# One statement, so that all values belong to the same moment. Without the terminal total
# difficulty, which is longer than orjson's integers.
_ROWS = Statement(
    """
    WITH network AS (
        SELECT n.slug, n.head_number, s.number AS safe, z.number AS finalized,
            f.best_number AS best, f.alarm <> '' AS alarm,
            extract(epoch FROM f.process_started_at) AS started_at,
            (n.genesis -> 'config') - 'terminalTotalDifficulty' AS config,
            (SELECT min(us.unsupported_fork_time) FROM nodeapi_upstreamstatus us
             JOIN networks_upstream u ON u.id = us.upstream_id
             WHERE u.network_id = n.id AND u.is_enabled) AS fork_time,
            extract(epoch FROM now() - f.updated_at) AS status_age,
            (SELECT count(DISTINCT q.hash) FROM nodeapi_quarantinedblock q
             WHERE q.network_id = n.id) AS quarantined
        FROM networks_network n
        LEFT JOIN nodeapi_followerstatus f ON f.network_id = n.id
        LEFT JOIN nodeapi_block s ON s.network_id = n.id AND s.hash = n.safe_hash
        LEFT JOIN nodeapi_block z ON z.network_id = n.id AND z.hash = n.finalized_hash
    ), import AS (
        SELECT n.slug, recent.*
        FROM networks_network n
        JOIN nodeapi_followerstatus f ON f.network_id = n.id
        CROSS JOIN LATERAL (
            SELECT count(*) AS blocks, coalesce(sum(t.gas_used), 0) AS gas,
                coalesce(sum(t.transactions), 0) AS transactions,
                coalesce(sum(t.fetch_ms), 0) AS fetch,
                coalesce(sum(t.execute_ms), 0) AS execute,
                coalesce(sum(t.commit_ms), 0) AS commit
            FROM nodeapi_importtiming t
            WHERE t.network_id = n.id AND t.at > now() - interval '5 minutes'
        ) recent
    ), reorganisation AS (
        SELECT n.slug, r.depth, count(*) AS count
        FROM nodeapi_reorganisation r JOIN networks_network n ON n.id = r.network_id
        GROUP BY n.slug, r.depth
    ), upstream AS (
        SELECT n.slug, u.id, u.url, s.head_number, s.latency_ms, s.requests, s.errors,
            coalesce(s.backing_off_until > now(), false) AS is_backing_off
        FROM networks_upstream u JOIN networks_network n ON n.id = u.network_id
        LEFT JOIN nodeapi_upstreamstatus s ON s.upstream_id = u.id
        WHERE u.is_enabled
    )
    SELECT json_build_object(
        'networks', (SELECT json_agg(t) FROM network t),
        'imports', (SELECT json_agg(t) FROM import t),
        'reorganisations', (SELECT json_agg(t) FROM reorganisation t),
        'upstreams', (SELECT json_agg(t) FROM upstream t)
    )::text
    """
)

_Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Chains:
    """The rows of all networks: one object for each row, with the columns of `_ROWS`."""

    networks: _Rows
    imports: _Rows
    reorganisations: _Rows
    upstreams: _Rows


class ChainMetrics(LazyPart):
    """Reads the rows of networks and followers, and converts them to metrics."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._result = SharedResult(self._read, FRESH_SECONDS)

    async def stop(self) -> None:
        """Cancel a read that is in progress."""
        await self._result.stop()

    async def collect(self) -> list[Metric]:
        """Return all metrics, or none if the database does not answer."""
        chains = await self._result.get()
        if chains is None:
            return []
        # The first time, `_of_forks` loads the EVM. Other requests are answered in the meantime.
        return await asyncio.to_thread(list, metrics(chains))

    async def _read(self) -> Chains | None:
        try:
            async with asyncio.timeout(DATABASE_SECONDS):
                ((document,),) = await self._connections.fetch(_ROWS)
        except (Unavailable, TimeoutError):
            return None
        rows = orjson.loads(document or b"{}")
        return Chains(**{name: found or [] for name, found in rows.items()})


def metrics(chains: Chains) -> Iterator[Metric]:
    """Yield the metrics of all networks."""
    yield from _of_networks(chains.networks)
    yield _of_forks(chains.networks)
    yield from _of_imports(chains.imports)
    followed = sorted({row["slug"] for row in chains.upstreams})
    yield _of_reorganisations(chains.reorganisations, followed)
    yield from _of_upstreams(chains.upstreams)


def _of_networks(rows: _Rows) -> Iterator[Metric]:
    followed = [row for row in rows if row["started_at"] is not None]
    for name, text, column, some in (
        ("network_safe_number", "Number of the safe block.", "safe", rows),
        (
            "network_finalized_number",
            "Number of the finalized block.",
            "finalized",
            rows,
        ),
        (
            "network_best_number",
            "Highest block number that an upstream has reported.",
            "best",
            rows,
        ),
        (
            "follower_alarm",
            "1 while the follower reports an alarm.",
            "alarm",
            followed,
        ),
        (
            "follower_start_time_seconds",
            "Unix time at which the follower process was started.",
            "started_at",
            followed,
        ),
        (
            "follower_status_age_seconds",
            "Time since the follower reported its state.",
            "status_age",
            followed,
        ),
        (
            "quarantined_blocks",
            "Invalid blocks that upstreams have served.",
            "quarantined",
            followed,
        ),
    ):
        yield _gauge(name, text, _NETWORK, _values(some, column))
    lags = [
        {**row, "lag": max(0, row["best"] - (row["head_number"] or 0))}
        for row in rows
        if row["best"] is not None
    ]
    yield _gauge(
        "network_lag_blocks",
        "Blocks from the head to the highest one of any upstream.",
        _NETWORK,
        _values(lags, "lag"),
    )


def _of_forks(rows: _Rows) -> Metric:
    """Return the times of forks that this version can't execute.

    They come from the networks' configs. Of the forks that only a network's upstreams
    report, the first one is included.
    """
    times: dict[tuple[str, ...], float] = {}
    for row in rows:
        # Importing it loads the EVM, which takes about a second and 20 MB, once.
        from evm.chain_config import ChainConfig, InvalidChainConfig

        with suppress(InvalidChainConfig):  # reported when blocks are imported
            config = ChainConfig.from_genesis({"config": row["config"]})
            known = {f.time: f.name for f in config.unknown_forks if f.time is not None}
            if row["fork_time"] is not None:
                known.setdefault(row["fork_time"], "unknown")
            for time, name in known.items():
                times[row["slug"], name] = time
    return _gauge(
        "network_unsupported_fork_time_seconds",
        "Unix time of a scheduled fork that this version does not support.",
        ("network", "fork"),
        times,
    )


def _of_imports(rows: _Rows) -> Iterator[Metric]:
    for name, text in (
        ("blocks", "Blocks that were imported in the last five minutes."),
        ("transactions", "Transactions in these blocks."),
        ("gas", "Gas that these blocks have used."),
    ):
        yield _gauge(f"import_recent_{name}", text, _NETWORK, _values(rows, name))
    yield _gauge(
        "import_recent_seconds",
        "Duration of importing these blocks, by phase.",
        (*_NETWORK, "phase"),
        {(row["slug"], phase): row[phase] / 1000 for row in rows for phase in PHASES},
    )


def _of_reorganisations(rows: _Rows, followed: Sequence[str]) -> Metric:
    """Return a histogram of depths. followed: networks that are shown without any."""
    by_network: dict[str, Counter[int]] = {slug: Counter() for slug in followed}
    for row in rows:
        by_network.setdefault(row["slug"], Counter())[row["depth"]] = row["count"]
    family = HistogramMetricFamily(
        "reorganisation_depth",
        "Blocks that a reorganisation has removed from the canonical chain.",
        labels=_NETWORK,
    )
    for slug, depths in by_network.items():
        buckets = [
            (str(most), sum(count for depth, count in depths.items() if depth <= most))
            for most in DEPTHS
        ]
        total = sum(depth * count for depth, count in depths.items())
        family.add_metric((slug,), [*buckets, ("+Inf", depths.total())], total)
    return family


def _of_upstreams(rows: _Rows) -> Iterator[Metric]:
    known = [row for row in rows if row["requests"] is not None]
    for name, text, column in (
        ("requests", "Requests to an upstream.", "requests"),
        ("errors", "Requests to an upstream that have failed.", "errors"),
    ):
        family = CounterMetricFamily(f"upstream_{name}", text, labels=_UPSTREAM)
        for labels, value in _by_upstream(known, column).items():
            family.add_metric(labels, value)
        yield family
    latencies = _by_upstream(known, "latency_ms")
    yield _gauge(
        "upstream_latency_seconds",
        "Moving average of an upstream's response time.",
        _UPSTREAM,
        {labels: latency / 1000 for labels, latency in latencies.items()},
    )
    yield _gauge(
        "upstream_head_number",
        "Number of the block that an upstream has reported as its head.",
        _UPSTREAM,
        _by_upstream(known, "head_number"),
    )
    yield _gauge(
        "upstream_backing_off",
        "1 while no request is sent to an upstream because of its errors.",
        _UPSTREAM,
        _by_upstream(rows, "is_backing_off"),
    )


def _values(rows: _Rows, column: str) -> dict[tuple[str, ...], float]:
    """Return the values that are not null, by network."""
    return {(row["slug"],): row[column] for row in rows if row[column] is not None}


def _by_upstream(rows: _Rows, column: str) -> dict[tuple[str, ...], float]:
    """Return the values that are not null, by upstream. No label contains its URL."""
    return {
        (row["slug"], str(row["id"]), urlsplit(mask_url(row["url"])).netloc): row[
            column
        ]
        for row in rows
        if row[column] is not None
    }


def _gauge(
    name: str,
    text: str,
    labels: Sequence[str],
    values: Mapping[tuple[str, ...], float],
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for shown, value in values.items():
        family.add_metric(shown, value)
    return family
