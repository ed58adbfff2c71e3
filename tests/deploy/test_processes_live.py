"""Several processes under load, while Redis is stopped and workers end or are killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import httpx
import pytest
from django.db import connections
from django.db.models import Sum
from django.utils import timezone

from keys.models import KeyVersion, UsageBucket
from keys.services import announce_key, roll_key
from keys.services.limits import set_limits
from tests.support.live import JSON_HEADERS, Live, api_key_of, live_service, request
from tests.support.redis_server import own_redis
from tests.support.rows import make_network
from tests.support.waiting import PATIENCE_SECONDS, until, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

BODY = json.dumps(request("eth_chainId"))
WORKERS = 2


@dataclass
class Load:
    """Clients that make calls continuously, and the responses to them.

    answers: when each request was sent, when it was answered (Unix seconds), and the
        status; 0 for a connection that broke.
    """

    clients: int = 8
    answers: list[tuple[float, float, int]] = field(default_factory=list)
    is_over: bool = False

    def statuses(self) -> set[int]:
        return {status for _, _, status in self.answers}

    async def run(self, path: str, scenario: Callable[[], None]) -> None:
        """Make calls while a scenario runs in a thread."""

        async def ask_on() -> None:
            async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
                while not self.is_over:
                    await self.ask(http, path)

        def go_through() -> None:
            try:
                scenario()
            finally:
                connections.close_all()  # the connection of this thread

        clients = [asyncio.create_task(ask_on()) for _ in range(self.clients)]
        try:
            await asyncio.to_thread(go_through)
        finally:
            self.is_over = True
            await asyncio.gather(*clients)

    async def ask(self, http: httpx.AsyncClient, path: str) -> None:
        sent = time.time()
        try:
            answer = await http.post(path, content=BODY, headers=JSON_HEADERS)
            status = answer.status_code
        except httpx.TransportError:
            status = 0
        self.answers.append((sent, time.time(), status))

    def more(self, count: int = 100) -> None:
        """Wait until `count` further requests have been answered."""
        seen = len(self.answers)
        wait_until(lambda: len(self.answers) >= seen + count)


def fallbacks(live: Live) -> float:
    """Return the number of leases that all processes have taken without Redis."""
    found = 0.0
    for inner in live.server.inner:
        text = httpx.get(f"http://127.0.0.1:{inner.getsockname()[1]}/metrics").text
        (value,) = re.findall(r"^limiter_fallback_total (.*)$", text, re.MULTILINE)
        found += float(value)
    return found


def limited_key(live: Live, rate: int, burst: int) -> str:
    secret = live.new_key()
    api_key = api_key_of(secret)
    set_limits(api_key=api_key, credits_per_second=rate, burst=burst)
    return secret


def test_redis_goes_and_comes_and_no_request_fails() -> None:
    make_network("alpha")
    with (
        own_redis() as redis,
        live_service(WORKERS, {"REDIS_URL": redis.url}, with_metrics=True) as live,
    ):
        # More than the clients can spend, so that no request may be rejected.
        wide = f"{live.base_url}/v3/{limited_key(live, 100_000, 200_000)}"
        narrow = f"{live.base_url}/v3/{limited_key(live, 1, 100)}"
        patient, flood = Load(), Load(clients=2)

        def scenario() -> None:
            patient.more()
            assert fallbacks(live) == 0
            redis.stop()
            wait_until(lambda: fallbacks(live) > 0)
            patient.more()
            flood.more(400)
            redis.start()
            wait_until(lambda: _has_settled(live, patient))
            patient.more()
            flood.is_over = True

        async def both() -> float:
            started = time.monotonic()
            await asyncio.gather(
                patient.run(wide, scenario),
                flood.run(narrow, lambda: wait_until(lambda: flood.is_over)),
            )
            return time.monotonic() - started

        seconds = asyncio.run(both())
        admitted = sum(status == 200 for _, _, status in flood.answers)
        assert patient.statuses() == {200}
        assert flood.statuses() == {200, 429}
        assert admitted <= WORKERS * (seconds + 100)
        assert "each process counts limits separately" in live.log()


def _has_settled(live: Live, load: Load) -> bool:
    """Return whether requests are answered without a lease taken without Redis."""
    before = fallbacks(live)
    load.more(50)
    return fallbacks(live) == before


def calls_counted() -> int:
    """Return the number of calls in the statistics, which is equal for each span."""
    by_span = dict(UsageBucket.objects.values_list("span").annotate(Sum("calls")))
    (calls,) = set(by_span.values()) or {0}
    return calls


def test_leaving_processes_answer_and_count_all_that_was_sent_to_them() -> None:
    make_network("alpha")
    with live_service(WORKERS, drain_seconds=4) as live:
        key = live.new_key()
        answered = asyncio.run(_ask_until_told_to_go(live, key))
    assert set(answered) == {200}
    assert len(answered) > 8
    assert calls_counted() == len(answered)


async def _ask_until_told_to_go(live: Live, key: str) -> list[int]:
    """Make calls like a load balancer, after asking `/readyz`. Return their statuses."""
    statuses: list[int] = []

    async def client() -> None:
        async with httpx.AsyncClient(
            base_url=live.base_url, timeout=PATIENCE_SECONDS
        ) as http:
            while (await http.get("/readyz")).status_code == 200:
                answer = await http.post(
                    f"/v3/{key}", content=BODY, headers=JSON_HEADERS
                )
                statuses.append(answer.status_code)

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(client())
        await until(lambda: len(statuses) >= 100)
        await asyncio.to_thread(live.server.stop)
    return statuses


def test_killed_process_loses_what_it_had_not_written_and_no_more() -> None:
    make_network("alpha")

    with live_service(WORKERS) as live, _supervised(live):
        key = live.new_key()
        before, after = Load(), Load()
        path = f"{live.base_url}/v3/{key}"
        asyncio.run(before.run(path, before.more))
        written = len(before.answers)
        assert before.statuses() == {200}
        wait_until(lambda: calls_counted() == written)

        victim = live.server.pids[0]
        replaced = 0.0

        def kill() -> None:
            nonlocal replaced
            after.more()
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: victim not in live.server.pids)
            replaced = time.time()
            after.more()

        asyncio.run(after.run(path, kill))
        # The killed process had at most eight requests, which failed.
        broken = sum(status == 0 for _, _, status in after.answers)
        assert after.statuses() <= {200, 0}
        assert broken <= 2 * after.clients
    # All workers have ended by now, and have written their counts.
    later = sum(sent > replaced for sent, _, _ in after.answers)
    assert later <= calls_counted() - written <= len(after.answers)


class _supervised:
    """Replace dead workers during a `with` block."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._thread = threading.Thread(target=live.server.supervise)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._live.server.leave()
        self._thread.join()


@pytest.fixture
def live() -> Iterator[Live]:
    make_network("alpha")
    with live_service(WORKERS) as live:
        yield live


def test_key_is_rolled_under_load_and_ends_at_its_second(live: Live) -> None:
    secret = live.new_key()
    api_key = api_key_of(secret)
    old, new = Load(clients=4), Load(clients=4)
    ends = timezone.now()

    def scenario() -> None:
        nonlocal ends
        old.more()
        rolled = roll_key(api_key=api_key, overlap=timedelta(hours=1))
        live.secrets.append(rolled.secret)
        # Let the rest of the hour pass.
        ends = timezone.now() + timedelta(seconds=2)
        version = KeyVersion.objects.exclude(expires_at=None).get(api_key=api_key)
        version.expires_at = ends
        version.save()
        announce_key(api_key)

        def old_is_over() -> None:
            wait_until(lambda: timezone.now() > ends)
            new.more()
            old.more()

        asyncio.run(new.run(f"{live.base_url}/v3/{rolled.secret}", old_is_over))

    asyncio.run(old.run(f"{live.base_url}/v3/{secret}", scenario))
    end = ends.timestamp()
    early = {status for _, answered, status in old.answers if answered < end}
    late = {status for sent, _, status in old.answers if sent >= end}
    assert (early, late) == ({200}, {401})
    assert new.statuses() == {200}
