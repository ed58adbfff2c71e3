"""`/metrics` of real processes, read with Prometheus' own parser."""

from __future__ import annotations

import os

import pytest
from prometheus_client.parser import text_string_to_metric_families

from config import server
from config.management import serving
from keys.services import get_or_create_customer, issue_key
from tests.support import web
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
        listeners = server.listen("127.0.0.1", 0, workers)
        inner = [server.listen("127.0.0.1", 0, 1)[0] for _ in range(workers)]
        environ = {**os.environ, "DATABASE_URL": test_database_url(), **environ}
        running = server.Server(listeners, environ, inner=inner)
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
    assert found[("rpc_inflight",)] == 1  # this question
    assert found[("ws_connections",)] == found[("draining",)] == 0
    assert found[("process_resident_memory_bytes",)] > 10**7
    assert service.key[3:7] not in service.text


def test_each_worker_tells_of_itself(serve):
    service = serve(workers=2)
    for _ in range(20):
        service.ask(request("eth_chainId"))
    name = "rpc_requests_total", "eth_chainId", "measured", "ok"
    shares = [service.samples(number).get(name, 0) for number in range(2)]
    assert sum(shares) == 20


def test_nobody_reads_metrics_where_customers_come_in(serve):
    service = serve()
    assert web.get(f"{service.running.base_url}/metrics").status_code == 404


def test_a_token_is_asked_for_where_there_is_one(serve):
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
    with pytest.raises(ValueError, match="set METRICS_TOKEN"):
        serving.Doors("127.0.0.1")
