"""`/livez` and `/readyz` of real processes."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from dataclasses import replace

import pytest
from redis import Redis

from evm.headers import decode_header
from nodeapi.models import Block
from server import supervisor
from tests.support import web
from tests.support.alive import is_alive
from tests.support.installation import installation
from tests.support.redis_server import own_redis
from tests.support.rows import add_block, hash_of, make_network, plain_header
from tests.support.service import test_database_url
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

MUST = "invalid query: max_lag must be a number of seconds"


def served(*, environ=None, drain_seconds=0, workers=1):
    listeners = supervisor.listen("127.0.0.1", 0, workers)
    environ = {**os.environ, "DATABASE_URL": test_database_url(), **(environ or {})}
    return supervisor.Server(listeners, environ, drain_seconds=drain_seconds)


def test_a_process_is_alive_and_ready_and_no_cache_keeps_that():
    make_network("heads")
    with served() as running, web.Client(base_url=running.base_url) as client:
        alive = client.get("/livez")
        assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
        ready = wait_until(lambda: _if_well(client.get("/readyz")))
        assert ready.status_code == 200
        assert ready.json() == {
            "status": "ready",
            "checks": {"database": "ok", "changes": "ok", "redis": "ok"},
            "networks": {"heads": {"head": None, "head_age_seconds": None}},
        }
        for answer in (alive, ready):
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-type"] == "application/json"
        head = client.head("/readyz")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(ready.content))
        refused = client.post("/livez", json={})
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


def test_the_age_of_a_head_is_that_of_its_block():
    with installation(with_chain=True) as own:
        listeners = supervisor.listen("127.0.0.1", 0, 1)
        with supervisor.Server(listeners, {**os.environ, **own.env}) as running:
            answer = web.get(f"{running.base_url}/readyz").json()
        with own.connect() as connection:
            number, header = connection.execute(
                "SELECT number, header FROM nodeapi_block ORDER BY number DESC"
            ).fetchone()
    (found,) = answer["networks"].values()
    assert found["head"] == number
    assert (
        abs(found["head_age_seconds"] - (time.time() - decode_header(header).timestamp))
        < 60
    )


def test_a_process_without_its_database_is_alive_and_not_ready():
    with installation() as own:
        listeners = supervisor.listen("127.0.0.1", 0, 1)
        with (
            supervisor.Server(listeners, {**os.environ, **own.env}) as running,
            web.Client(base_url=running.base_url) as client,
        ):
            wait_until(lambda: _if_well(client.get("/readyz")))
            own.database.stop()
            answer = wait_until(lambda: _unless(client.get("/readyz"), 200))
            assert answer.status_code == 503
            assert answer.json()["status"] == "unavailable"
            assert answer.json()["checks"]["database"] == "unavailable"
            wait_until(lambda: _changes(client.get("/readyz")) == "unknown")
            assert client.get("/livez").status_code == 200
            own.database.start()
            wait_until(lambda: client.get("/readyz").status_code == 200)


def test_a_process_without_redis_says_so_and_stays_ready():
    nowhere = {"REDIS_URL": "redis://127.0.0.1:9/0"}
    with served(environ=nowhere) as running, web.Client() as client:
        url = f"{running.base_url}/readyz"
        answer = wait_until(lambda: _unless(client.get(url), 503))
    assert answer.status_code == 200
    assert _changes(answer) == "ok: read once per second"
    assert answer.json()["checks"]["redis"] == "unavailable: limits are per process"


def test_a_redis_that_refuses_writes_is_unavailable():
    with (
        own_redis() as full,
        served(environ={"REDIS_URL": full.url}) as running,
        web.Client() as client,
        Redis.from_url(full.url) as redis,
    ):
        url = f"{running.base_url}/readyz"
        wait_until(lambda: _redis(client.get(url)) == "ok")
        redis.config_set("maxmemory", "1")
        expected = "unavailable: limits are per process"
        wait_until(lambda: _redis(client.get(url)) == expected)
        assert client.get(url).status_code == 200


def _redis(answer):
    return answer.json()["checks"]["redis"]


def test_a_process_that_is_to_leave_says_so_while_it_still_answers():
    with served(drain_seconds=5) as running:
        with web.Client(base_url=running.base_url) as client:
            wait_until(lambda: _if_well(client.get("/readyz")))
            assert "connection" not in client.get("/livez").headers
            told = time.monotonic()
            worker = running.pids[0]
            os.kill(worker, signal.SIGTERM)
            answer = wait_until(lambda: _unless(client.get("/readyz"), 200))
            assert answer.status_code == 503
            assert answer.json() == {"status": "draining"}
            assert answer.headers["connection"] == "close"
            new = web.get(f"{running.base_url}/livez")  # on a separate connection
            assert (new.status_code, new.headers["connection"]) == (200, "close")
        wait_until(lambda: not is_alive(worker))
        assert time.monotonic() - told > 4.5


@pytest.fixture
def lagging():
    """Serve a network whose head is two minutes old, and one without blocks."""
    network = make_network("live", head_number=1, head_hash=hash_of("a"))
    add_block(network, "a", 1)
    header = replace(decode_header(plain_header(1)), timestamp=int(time.time()) - 120)
    Block.objects.update(header=header.encode())
    make_network("empty")
    with served() as running, web.Client(base_url=running.base_url) as client:
        wait_until(lambda: _if_well(client.get("/readyz")))
        yield client


def test_readiness_can_demand_current_networks(lagging):
    behind = r"live is \d+ s behind, {} s are allowed"
    for query, status, lag in (
        ("network=live", 200, "ok"),
        ("network=live&max_lag=86400", 200, "ok"),
        ("network=live&max_lag=60", 503, behind.format(60)),
        ("network=live&max_lag=0.5", 503, behind.format("0.5")),
        ("network=empty", 503, "empty has no block"),
        ("network=empty&max_lag=86400", 503, "empty has no block"),
        (
            "network=live&network=empty&max_lag=60",
            503,
            behind.format(60) + "; empty has no block",
        ),
        ("unknown=parameter", 200, None),
    ):
        answer = lagging.get(f"/readyz?{query}")
        assert answer.status_code == status, query
        assert answer.json()["status"] == ("ready" if status == 200 else "unavailable")
        found = answer.json()["checks"].get("lag")
        assert found is lag is None or re.fullmatch(lag, found), query
    # The request demands nothing of networks.
    assert lagging.get("/readyz").status_code == 200


def test_a_wrong_demand_is_named(lagging):
    numbers = ("", "-1", "nan", "inf", "1s", "%00")
    for query, status, text in (
        ("network=none", 404, "unknown network: none"),
        ("network=live&network=", 404, "unknown network: "),
        ("max_lag=3", 400, "invalid query: max_lag needs network"),
        *((f"network=live&max_lag={number}", 400, MUST) for number in numbers),
    ):
        answer = lagging.get(f"/readyz?{query}")
        assert (answer.status_code, answer.json()) == (status, {"status": text})


def test_readiness_checks_of_many_callers_cost_one_query_a_second():
    before, began = _questions(), time.monotonic()
    answers = []
    with served() as running:

        def ask():
            with web.Client(base_url=running.base_url) as client:
                answers.extend(client.get("/readyz").status_code for _ in range(50))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [200] * 200
    # PostgreSQL's statistics include a connection's reads when it ends.
    asked = _questions() - before
    assert 0 < asked < 20 + 2 * (time.monotonic() - began)


def _if_well(answer):
    """Return the response of `/readyz` if the process is ready."""
    return answer if set(answer.json()["checks"].values()) == {"ok"} else None


def _changes(answer):
    return answer.json()["checks"]["changes"]


def _unless(answer, status):
    return answer if answer.status_code != status else None


def _questions():
    """Return how often all processes have read the heads."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) "
            "FROM pg_stat_user_tables WHERE relname = 'networks_network'"
        )
        return cursor.fetchone()[0]
