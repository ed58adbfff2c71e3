"""`/metrics` of real processes, read with Prometheus' own parser."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from config.chain_metrics import FRESH_SECONDS
from config.env import BASE_DIR
from config.management import serving
from evm.public import PUBLIC_NETWORKS
from keys.services import get_or_create_customer, issue_key
from nodeapi.models.following import FollowerStatus, UpstreamStatus
from server import supervisor
from tests.support import web
from tests.support.following import (
    add_import,
    add_quarantined,
    add_reorganisation,
    followed_network,
)
from tests.support.live import request
from tests.support.rows import make_network
from tests.support.service import test_database_url
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Served:
    """A service with an inner port for each worker, and a key for it."""

    def __init__(self, running, key):
        self.running = running
        self.key = key
        self.inner = [
            f"http://127.0.0.1:{listener.getsockname()[1]}"
            for listener in running.inner
        ]

    def ask(self, body, key=None):
        path = f"{self.running.base_url}/v3/{key or self.key}"
        return web.post(path, json=body)

    def samples(self, number=0, **headers):
        answer = web.get(f"{self.inner[number]}/metrics", headers=headers)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        self.text = answer.text
        return {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }


@pytest.fixture
def serve():
    make_network("measured")
    issued = issue_key(owner=get_or_create_customer(email="owner@example.org"))
    started = []

    def serve(workers=1, **environ):
        listeners = supervisor.listen("127.0.0.1", 0, workers)
        inner = [supervisor.listen("127.0.0.1", 0, 1)[0] for _ in range(workers)]
        environ = {**os.environ, "DATABASE_URL": test_database_url(), **environ}
        running = supervisor.Server(listeners, environ, inner=inner)
        started.append(running)
        return Served(running.__enter__(), issued.secret)

    yield serve
    for running in started:
        running.stop()


def test_calls_are_counted_by_network_method_and_outcome_and_never_by_key(serve):
    service = serve()
    for _ in range(3):
        service.ask(request("eth_chainId"))
    service.ask([{**request("eth_nothing"), "id": number} for number in range(7)])
    service.ask(request("eth_chainId"), key="nk_" + "0" * 36)
    found = service.samples()
    chain_id = "eth_chainId", "measured"
    assert found["rpc_requests_total", *chain_id, "ok"] == 3
    assert found["rpc_credits_total", *chain_id, "ok"] == 3
    unknown = "(unknown)", "client_error", "measured"
    assert found["rpc_requests_total", *unknown] == 7
    assert found["rpc_request_seconds_count", *chain_id] == 3
    assert 0 < found["rpc_request_seconds_sum", *chain_id] < 3 * PATIENCE_SECONDS
    assert found["rpc_request_seconds_bucket", "+Inf", *chain_id] == 3
    assert found["rpc_batch_size_bucket", "5"] == 0
    assert found["rpc_batch_size_bucket", "10"] == 1
    assert found[("rpc_batch_size_sum",)] == 7
    assert found["rpc_refused_requests_total", "401", "key_invalid"] == 1
    assert found[("key_cache_misses_total",)] == 1
    assert found[("key_cache_hits_total",)] == 3
    assert found[("limiter_fallback_total",)] == 0
    assert found["dependency_up", "database"] == 1
    wait_until(lambda: service.samples()["dependency_up", "redis"] == 1)
    assert found[("rpc_inflight",)] == 1  # this request
    assert found[("ws_connections",)] == found[("draining",)] == 0
    assert found[("process_resident_memory_bytes",)] > 10**7
    assert service.key[3:7] not in service.text


def test_each_worker_returns_its_own_metrics(serve):
    service = serve(workers=2)
    for _ in range(20):
        service.ask(request("eth_chainId"))
    name = "rpc_requests_total", "eth_chainId", "measured", "ok"
    shares = [service.samples(number).get(name, 0) for number in range(2)]
    assert sum(shares) == 20


def test_metrics_are_not_served_on_the_customers_address(serve):
    service = serve()
    assert web.get(f"{service.running.base_url}/metrics").status_code == 404


def test_metrics_require_the_configured_token(serve):
    service = serve(METRICS_TOKEN="secret")
    for shown in ({}, {"authorization": "Bearer wrong"}):
        answer = web.get(f"{service.inner[0]}/metrics", headers=shown)
        assert answer.status_code == 401
    assert service.samples(authorization="Bearer secret")


def test_an_inner_port_that_others_can_reach_needs_a_token(monkeypatch):
    monkeypatch.setenv("PORT", "0")
    monkeypatch.setenv("METRICS_PORT", "1")
    monkeypatch.setenv("METRICS_HOST", "0.0.0.0")
    monkeypatch.delenv("METRICS_TOKEN", raising=False)
    with pytest.raises(ValueError, match="METRICS_TOKEN must be set"):
        serving.ListeningSockets("127.0.0.1")


SECRET_URL = (
    "https://login-name:pass-word@node.example.org:8545/v3/path-secret?key=query"
)


def test_a_followed_network_is_reported_with_its_upstream(serve):
    network = followed_network("live", url=SECRET_URL)
    upstream = network.upstreams.get()
    for number in (8, 9):
        add_import(network, number)
    add_import(network, 1, at=datetime.now(UTC) - timedelta(minutes=6))
    for depth in (1, 1, 7, 20):
        add_reorganisation(network, depth)
    add_quarantined(network, "bad")
    service = serve()

    def samples():
        # If the database is slow, a response omits its rows.
        found = service.samples()
        return found if ("network_head_number", "live") in found else None

    found = wait_until(samples)
    numbers = {"head": 9, "safe": 7, "finalized": 5, "best": 12}
    for name, number in numbers.items():
        assert found[f"network_{name}_number", "live"] == number
    assert found["network_lag_blocks", "live"] == 3
    assert abs(found["network_head_age_seconds", "live"] - (time.time() - 9)) < 600
    assert found["import_recent_blocks", "live"] == 2
    assert found["import_recent_transactions", "live"] == 4
    assert found["import_recent_gas", "live"] == 84_000
    phases = {"fetch": 0.04, "execute": 0.6, "commit": 0.01}
    for phase, seconds in phases.items():
        name = "import_recent_seconds", *sorted((phase, "live"))
        assert found[name] == pytest.approx(seconds)
    depths = {"1": 2, "5": 2, "7": 3, "10": 3, "20": 4, "+Inf": 4}
    for most, count in depths.items():
        name = "reorganisation_depth_bucket", *sorted((most, "live"))
        assert found[name] == count
    assert found["reorganisation_depth_sum", "live"] == 29
    assert found["quarantined_blocks", "live"] == 1
    assert found["follower_alarm", "live"] == 0
    assert 0 <= found["follower_status_age_seconds", "live"] < 600
    labels = sorted(("live", str(upstream.pk), "node.example.org:8545"))
    assert found["upstream_requests_total", *labels] == 100
    assert found["upstream_errors_total", *labels] == 3
    assert found["upstream_latency_seconds", *labels] == 0.25
    assert found["upstream_head_number", *labels] == 12
    assert found["upstream_backing_off", *labels] == 0
    for secret in ("login-name", "pass-word", "path-secret", "query"):
        assert secret not in service.text


def test_forks_that_this_version_lacks_are_reported(serve):
    for slug, changes in (
        ("live", {"futureTime": 2_000_000_000, "verkleTime": 2_100_000_000}),
        ("old", {"clique": {}, "futureTime": 2_000_000_000}),
    ):
        network = make_network(slug)
        genesis = PUBLIC_NETWORKS["mainnet"].genesis()
        network.genesis = {"config": {**genesis["config"], **changes}}
        network.save(update_fields=["genesis"])
    followed_network("upstreams", url="http://127.0.0.1:9")
    UpstreamStatus.objects.update(unsupported_fork_time=2_050_000_000)
    found = serve().samples()
    name = "network_unsupported_fork_time_seconds"
    assert {key: value for key, value in found.items() if key[0] == name} == {
        (name, "future", "live"): 2_000_000_000,
        (name, "live", "verkle"): 2_100_000_000,
        (name, "unknown", "upstreams"): 2_050_000_000,
    }


def test_an_alarm_and_a_failing_upstream_are_reported(serve):
    network = followed_network("live", url="http://127.0.0.1:9")
    later = datetime.now(UTC) + timedelta(hours=1)
    FollowerStatus.objects.update(alarm="the upstreams left the finalized chain")
    UpstreamStatus.objects.update(backing_off_until=later, latency_ms=None)
    found = serve().samples()
    labels = sorted(("live", str(network.upstreams.get().pk), "127.0.0.1:9"))
    assert found["follower_alarm", "live"] == 1
    assert found["upstream_backing_off", *labels] == 1
    assert ("upstream_latency_seconds", *labels) not in found


def test_a_network_without_upstreams_has_no_follower_and_no_lag(serve):
    found = serve().samples()
    names = {name for name, *labels in found if "measured" in labels}
    assert not {name for name in names if name.startswith(("follower", "upstream"))}
    assert "network_lag_blocks" not in names
    assert "network_finalized_number" not in names


def test_the_rows_are_read_at_most_every_few_seconds(serve):
    """Many requests get the same values, and later ones get new values."""
    network = followed_network("live", url="http://127.0.0.1:9")
    service = serve()
    name = "follower_status_age_seconds", "live"
    began = time.monotonic()
    ages = [service.samples()[name] for _ in range(20)]
    passed_seconds = time.monotonic() - began
    assert len(set(ages)) <= 2 + passed_seconds / FRESH_SECONDS
    FollowerStatus.objects.filter(network=network).update(best_number=99)
    wait_until(lambda: service.samples()["network_best_number", "live"] == 99)


def test_every_metric_is_documented_and_no_other(serve):
    service = serve()
    service.samples()
    served = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(service.text)
        if not family.name.startswith(("process_", "python_"))
    }
    deploy = (BASE_DIR / "docs" / "deploy.md").read_text()
    table = deploy.partition("| metric | meaning |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    documented = set(re.findall(r"`([a-z_]+)`", " ".join(rows)))
    assert documented == served
