from __future__ import annotations

from collections.abc import Iterator

import httpx
import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.bodies import bodies, check_body
from tests.support import copies, web
from tests.support.live import Live, live_service

BODIES = 500
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    copies.sample_chain()
    with live_service(env={"NODEAPI_CACHE_BYTES": str(8 * MEBIBYTE)}) as live:
        yield live


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[httpx.Client]:
    url = f"{live.base_url}/v3/{live.new_key(may_trace=True)}"
    with web.Client(base_url=url) as client:
        yield client


def throw(client: httpx.Client, count: int) -> None:
    """POST generated bodies, and check each response by JSON-RPC's rules."""

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        # Shrinking a failing body is worth its time. The explain phase is not.
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(body=bodies)
    def check(body: bytes) -> None:
        check_body(client, body)

    check()


def resident_bytes(live: Live) -> int:
    return sum(psutil.Process(pid).memory_info().rss for pid in live.server.pids)


def test_every_body_gets_an_answer_in_json_rpc(
    live: Live, client: httpx.Client
) -> None:
    workers = list(live.server.pids)
    throw(client, BODIES // 5)
    before = resident_bytes(live)
    throw(client, BODIES - BODIES // 5)
    assert resident_bytes(live) - before < 64 * MEBIBYTE
    assert all(psutil.Process(pid).is_running() for pid in workers)
    # No request may cause a line in the log.
    assert live.log() == ""
