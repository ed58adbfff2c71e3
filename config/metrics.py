"""`/metrics`: statistics of a process in Prometheus' format.

When metrics are requested, this module reads the counters of other parts, and the rows
that followers write. It runs no code for other requests. There are no metrics by key,
because a provider has tens of thousands of keys. Their usage is in the database.

Names after https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import add

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from config.chain_metrics import ChainMetrics
from config.health import Finding, Health
from config.lean import is_reading, refuse_method, send_answer
from keys.metering.totals import Counter, Measured
from nodeapi.chain.replay_counts import ReplayCounts
from nodeapi.endpoint.endpoint import Endpoint
from nodeapi.node import Node
from nodeapi.tracing.pool import TracePool
from postgres.errors import Unavailable
from server.asgi import Receive, Scope, Send
from server.bounds import Bounds
from server.process import Process, process_of

_CREDITS, _MICROSECONDS, _BYTES, _LATENCIES = range(4)
"""Indices in a counter of `keys.metering.meter`."""

_FIRST_BUCKET, _LAST_BUCKET = 6, 27
"""Range of latency buckets shown: from 64 µs, the shortest latency, to 134 s."""

_LIMITS = ("process", "key", "address", "connections", "stalled")
"""Limits by which clients are disconnected; see `server.bounds`."""

_BATCH_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Metrics:
    """The ASGI application of `/metrics`.

    token: required from clients if other machines can connect.
    """

    def __init__(
        self,
        node: Node,
        endpoint: Endpoint,
        health: Health,
        chains: ChainMetrics,
        token: str = "",
    ) -> None:
        self._node = node
        self._endpoint = endpoint
        self._health = health
        self._chains = chains
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond on the inner port, otherwise with 404."""
        process = process_of(scope)
        port = (scope.get("server") or (None, None))[1]
        if process is None or not process.inner_port or port != process.inner_port:
            await send_answer(scope, send, 404, b'{"status":"not found"}')
        elif not is_reading(scope):
            await refuse_method(scope, send)
        elif not self._is_allowed(scope):
            await send_answer(scope, send, 401, b'{"status":"token needed"}')
        else:
            found, chains = await asyncio.gather(
                self._health.look(), self._chains.collect()
            )
            text = generate_latest(self._registry(process, found, chains))
            headers = [(b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode())]
            await send_answer(scope, send, 200, text, headers)

    def _is_allowed(self, scope: Scope) -> bool:
        shown = dict(scope["headers"]).get(b"authorization", b"")
        wanted = b"Bearer " + self._token
        return not self._token or hmac.compare_digest(shown, wanted)

    def _registry(
        self, process: Process, found: Finding, chains: Sequence[Metric]
    ) -> CollectorRegistry:
        """Return all figures as they are now."""
        registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=registry)
        figures = [*self._of_parts(), *_of_process(process, found), *chains]
        registry.register(_Figures(figures))
        return registry

    def _of_parts(self) -> Iterator[Metric]:
        node = self._node
        yield from calls(node.meter.totals(), self._slugs())
        yield batches(self._endpoint.calls.batch_sizes)
        refused = _counter(
            "rpc_refused_requests",
            "Rejected requests, by HTTP status and reason.",
            ("status", "reason"),
        )
        for (status, reason), count in self._endpoint.access.refusals.items():
            refused.add_metric((str(status), reason), count)
        yield refused
        yield from _of_keys(node)
        if isinstance(node.tracing, TracePool):
            workers = len(node.tracing.workers.pids)
            yield _gauge("trace_workers", "Processes that execute traces.", workers)
            yield _plain(
                "trace_workers_lost",
                "Processes that died while they executed a trace.",
                node.tracing.workers.lost,
            )
            yield from _replays(node.tracing.workers.replays)

    def _slugs(self) -> Mapping[int, str]:
        try:
            return {network.id: network.slug for network in self._node.directory.all()}
        except Unavailable:
            return {}


class _Figures(Collector):
    """A Prometheus collector of existing counters."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._metrics


def _replays(counts: ReplayCounts) -> Iterator[Metric]:
    """Yield the metrics of replays."""
    found = _counter(
        "trace_replays",
        "Executions of a block up to a transaction, by what they began with.",
        ("start",),
    )
    found.add_metric(("list",), counts.from_lists)
    found.add_metric(("execution",), counts.by_execution)
    yield found
    yield _plain(
        "trace_replays_restarted",
        "Executions that began with an access list in which a value was missing.",
        counts.missing,
    )


def calls(
    totals: Mapping[Measured, Counter], slugs: Mapping[int, str]
) -> Iterator[Metric]:
    """Yield metrics of calls: their number, costs and durations."""
    where = ("network", "method", "outcome")
    count = _counter("rpc_requests", "Calls.", where)
    credits = _counter("rpc_credits", "Credits charged for calls.", where)
    size = _counter(
        "rpc_response_bytes", "Uncompressed size of results and errors.", where
    )
    seconds = HistogramMetricFamily(
        "rpc_request_seconds",
        "Time from a request's arrival to the response to its call.",
        labels=where[:2],
    )
    by_method: dict[tuple[str, str], list[int]] = {}
    for (network_id, method, outcome), counter in sorted(totals.items()):
        network = slugs.get(network_id, str(network_id))
        labels = network, method, outcome
        count.add_metric(labels, sum(counter[_LATENCIES:]))
        credits.add_metric(labels, counter[_CREDITS])
        size.add_metric(labels, counter[_BYTES])
        known = by_method.get(labels[:2])
        by_method[labels[:2]] = list(map(add, known, counter) if known else counter)
    for labels_of_method, counter in by_method.items():
        latencies = counter[_LATENCIES:]
        seconds.add_metric(
            labels_of_method,
            [
                (str(2**bits / 10**6), sum(latencies[: bits + 1]))
                for bits in range(_FIRST_BUCKET, _LAST_BUCKET + 1)
            ]
            + [("+Inf", sum(latencies))],
            counter[_MICROSECONDS] / 10**6,
        )
    yield from (count, credits, size, seconds)


def batches(sizes: Mapping[int, int]) -> Metric:
    """Return a histogram of batch sizes. sizes: number of calls → number of batches."""
    buckets = [
        (str(limit), sum(sizes[calls] for calls in sizes if calls <= limit))
        for limit in _BATCH_BUCKETS
    ]
    family = HistogramMetricFamily("rpc_batch_size", "Number of calls in a batch.")
    family.add_metric(
        (),
        [*buckets, ("+Inf", sum(sizes.values()))],
        sum(calls * count for calls, count in sizes.items()),
    )
    return family


def _of_keys(node: Node) -> Iterator[Metric]:
    grants, meter = node.grants, node.meter
    yield _plain("key_cache_hits", "Cache hits of API keys.", grants.hits)
    yield _plain("key_cache_misses", "Cache misses of API keys.", grants.misses)
    yield _plain(
        "limiter_fallback",
        "Leases of credits taken while Redis was unavailable.",
        node.limiter.fallbacks,
    )
    yield SummaryMetricFamily(
        "usage_flush_seconds",
        "Duration of writing usage to the database.",
        count_value=meter.flushes,
        sum_value=meter.flush_seconds,
    )
    yield _plain(
        "usage_flush_failures",
        "Failed writes of usage, which are retried.",
        meter.failed_flushes,
    )
    yield _plain("usage_dropped", "Calls that are missing in the usage.", meter.dropped)
    yield _gauge(
        "usage_waiting_rows",
        "Rows of usage that are not written yet.",
        meter.waiting,
    )


def _of_process(process: Process, found: Finding) -> Iterator[Metric]:
    yield _gauge(
        "rpc_inflight",
        "Requests in progress.",
        process.in_flight,
    )
    yield _gauge("ws_connections", "Open WebSockets.", process.websockets)
    yield _gauge(
        "http_connections",
        "Open HTTP connections, idle ones included.",
        len(process.connections),
    )
    yield from _of_bounds(process.bounds)
    yield _gauge(
        "draining", "1 from SIGTERM until the process exits.", process.is_draining
    )
    up = GaugeMetricFamily(
        "dependency_up", "1 if the service responds.", labels=("service",)
    )
    up.add_metric(("database",), found.heads is not None)
    up.add_metric(("redis",), found.has_redis)
    yield up
    yield _gauge(
        "outbox_changes_known",
        "1 if all committed changes are known. Otherwise 0, and keys and heads are not cached.",
        found.knows_changes,
    )
    yield _gauge(
        "outbox_messages_received",
        "1 if changes are announced by messages, 0 if they are found by polling.",
        found.has_messages,
    )
    yield _gauge(
        "health_check_seconds",
        "Duration of the newest check of database and Redis.",
        found.seconds,
    )
    number = GaugeMetricFamily(
        "network_head_number", "Number of the newest block.", labels=("network",)
    )
    age = GaugeMetricFamily(
        "network_head_age_seconds",
        "Time since the timestamp of the newest block.",
        labels=("network",),
    )
    now = time.time()
    for head in found.heads or []:
        seconds = head.age_seconds(now)
        if head.number is not None and seconds is not None:
            number.add_metric((head.network,), head.number)
            age.add_metric((head.network,), seconds)
    yield from (number, age)


def _of_bounds(bounds: Bounds) -> Iterator[Metric]:
    yield _gauge(
        "buffered_bytes",
        "Size of unfinished request bodies and unread responses.",
        bounds.buffered.size,
    )
    disconnected = _counter(
        "disconnected_clients",
        "Clients that were disconnected, by the limit that was exceeded.",
        ("limit",),
    )
    for limit in _LIMITS:
        disconnected.add_metric((limit,), bounds.disconnected[limit])
    yield disconnected


def _counter(name: str, text: str, labels: Sequence[str]) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, labels=labels)


def _plain(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)
