"""Limits and metering over HTTP, with two worker processes on one Redis."""

from __future__ import annotations

import threading
import time

import pytest

from keys.models import KeyVersionUse, Span, UsageBucket
from keys.services import get_or_create_customer, grant_entitlement, issue_key
from keys.services.limits import set_limits
from networks.models import Network
from tests.support import web
from tests.support.live import live_service, request
from tests.support.rows import make_network
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture(scope="module")
def live(module_db):
    """Serve a network to tests that bring keys of their own."""
    make_network("limited")
    with live_service(workers=2) as live:
        yield live


def limited_key(live, **limits):
    """Return a new key with limits, as an API."""
    issued = issue_key(owner=get_or_create_customer(email="owner@example.org"))
    set_limits(api_key=issued.api_key, **limits)
    live.secrets.append(issued.secret)
    return issued


def calls(count, method="eth_chainId"):
    return [{**request(method), "id": number} for number in range(count)]


def test_request_over_the_rate_gets_retry_after(live):
    issued = limited_key(live, credits_per_second=1, burst=100)
    with live.api(key=issued.secret) as api:
        assert api.send(calls(100)).status_code == 200
        while (single := api.send(request("eth_chainId"))).status_code == 200:
            continue  # a second has passed
        started = time.monotonic()
        batch = api.send(calls(40))
        assert (single.status_code, batch.status_code) == (429, 429)
        assert single.headers["retry-after"] == "1"
        passed = time.monotonic() - started
        assert 38 - passed <= int(batch.headers["retry-after"]) <= 40
        error = single.json()["error"]
        assert error["code"] == -32005
        assert error["message"] == "request rate exceeded: 1 credits per second"
        assert error["data"]["reason"] == "rate_limited"
        assert error["data"]["allowed_credits_per_second"] == 1
        assert 0 < error["data"]["backoff_seconds"] <= 1
        assert [answer["id"] for answer in batch.json()] == list(range(40))
        assert {answer["error"]["code"] for answer in batch.json()} == {-32005}
        time.sleep(int(single.headers["retry-after"]))
        assert api.send(request("eth_chainId")).json()["result"]


def test_quota_of_the_day_is_402_without_retry_after(live):
    issued = limited_key(live, credits_per_second=1000, burst=1000, credits_per_day=150)
    with live.api(key=issued.secret) as api:
        assert api.send(calls(150)).status_code == 200
        for response in (api.send(request("eth_chainId")), api.send(calls(3))):
            assert response.status_code == 402
            assert "retry-after" not in response.headers
        assert {answer["error"]["code"] for answer in response.json()} == {-32005}
        data = response.json()[0]["error"]["data"]
        assert (data["reason"], data["limit"]) == ("daily_quota", 150)
        assert data["resets_at"].endswith("T00:00:00Z")


def test_batch_that_no_burst_can_hold_has_to_be_split(live):
    issued = limited_key(live, credits_per_second=1, burst=100)
    with live.api(key=issued.secret) as api:
        response = api.send(calls(101))
        assert response.status_code == 200
        assert len(response.json()) == 101
        error = response.json()[0]["error"]
        assert error["code"] == -32600
        assert error["message"] == (
            "batch needs 101 credits, more than this key's burst of 100: split it"
        )
        assert error["data"]["reason"] == "batch_too_costly"
        assert api.send(calls(100)).status_code == 200  # nothing was taken


def test_call_that_is_refused_costs_one_credit(live):
    issued = limited_key(live, credits_per_second=1, burst=100)
    with live.api(key=issued.secret) as api:
        started = time.monotonic()
        for _ in range(50):
            wrong = api.send(request("debug_traceBlockByHash", "0x"))
            assert wrong.status_code == 403
            assert api.send(request("eth_nothing")).json()["error"]["code"] == -32601
        more = 0
        while api.send(request("eth_nothing")).status_code != 429:
            more += 1  # some credits were regained in the meantime
        assert more <= time.monotonic() - started + 1


@pytest.mark.parametrize("wrap", [lambda call: call, lambda call: [call]])
def test_refusal_of_a_dear_method_costs_one_credit_too(live, wrap):
    issued = limited_key(live, credits_per_second=1, burst=100)
    network = Network.objects.get()
    grant_entitlement(api_key=issued.api_key, network=network, tracers=["callTracer"])
    refused = [
        request("debug_traceBlockByNumber", "0x7", {"tracer": "prestateTracer"}),
        request("debug_traceBlockByNumber", "0x7", {"tracer": "callTracer"}),
        request("debug_traceBlockByNumber", "0x7", {"tracer": 5}),
        request("eth_getStorageValues", {}, "latest"),
    ]
    with live.api(key=issued.secret) as api:
        for _ in range(20):
            for each in refused:
                answer = api.send(wrap(each))
                assert answer.status_code in (200, 403)
                assert "error" in str(answer.json())
        # 80 of 100 credits. Some credits were regained in the meantime.
        assert api.send(calls(20)).status_code == 200


def test_answered_and_refused_calls_are_counted(live):
    issued = limited_key(live, credits_per_second=1, burst=100)
    with live.api(key=issued.secret) as api:
        length = len(api.send(request("eth_chainId")).content)
        api.send(calls(60, "eth_nothing"))
        api.send(request("eth_getStorageAt", "0x"))
        api.send(request("debug_traceBlockByHash", "0x"))
        assert api.send(calls(98, "net_version")).status_code == 429
    expected = {
        ("eth_chainId", "ok"): (1, 1),
        ("(unknown)", "client_error"): (60, 60),
        ("eth_getStorageAt", "client_error"): (1, 1),
        ("debug_traceBlockByHash", "denied"): (1, 1),
        ("net_version", "limited"): (98, 0),
    }
    rows = UsageBucket.objects.filter(api_key=issued.api_key, span=Span.DAY)
    wait_until(lambda: rows.count() >= len(expected))
    assert {(r.method, r.outcome): (r.calls, r.credits) for r in rows.all()} == expected
    row = rows.get(method="eth_chainId")
    assert row.bytes_out == length
    assert sum(row.latencies) == 1
    assert 10 < row.duration_us < 10**6 * PATIENCE_SECONDS
    wait_until(KeyVersionUse.objects.filter(version=issued.version).exists)


def test_clients_of_two_processes_never_exceed_the_bound(live):
    rate, burst, seconds, patience = 20, 200, 3, 90
    issued = limited_key(live, credits_per_second=rate, burst=burst)
    admitted, refused = [0] * 8, [0] * 8
    workers = set()
    started = time.monotonic()

    def must_go_on():
        passed = time.monotonic() - started
        has_met_all = len(workers) == 2 and sum(refused) > 50
        return passed < seconds or (not has_met_all and passed < patience)

    def client(number):
        path = f"{live.base_url}/v3/{issued.secret}"
        while must_go_on():
            # A new connection for each request, so that both processes get some.
            with web.Client(headers={"origin": "http://page"}) as http:
                for _ in range(20):
                    response = http.post(path, json=request("eth_chainId"))
                    workers.add(response.headers["x-request-id"].partition("-")[0])
                    admitted[number] += response.status_code == 200
                    refused[number] += response.status_code == 429
                    if response.status_code == 429:
                        break

    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.monotonic() - started
    assert len(workers) == 2
    assert sum(refused) > 50
    # If Redis does not answer for a second, each process counts by itself.
    processes = 1 if "separately" not in live.log() else 2
    assert sum(admitted) <= processes * (rate * passed + burst)
