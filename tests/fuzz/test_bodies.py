from __future__ import annotations

import logging

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from jsonrpc.dispatch import Limits
from tests.fuzz.bodies import bodies, check_body
from tests.support import edge


@pytest.fixture(scope="module")
def client():
    with (
        edge.serve(edge.edge(Limits(), 5 * 2**20)) as url,
        httpx.Client(base_url=url + "/v3/good", timeout=30) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def quiet_client_log():
    """Keep httpx from writing a line for each of the requests."""
    logger = logging.getLogger("httpx")
    level = logger.level
    logger.setLevel(logging.WARNING)
    yield
    logger.setLevel(level)


@settings(
    max_examples=10_000,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(body=bodies)
def test_every_body_gets_an_answer_in_json_rpc(client, caplog, body):
    check_body(client, body)
    assert [r for r in caplog.records if r.levelno > logging.INFO] == []
