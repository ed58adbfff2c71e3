from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.nodeapi.upstreams.asking import SECRETS
from tests.support.upstream_server import UpstreamServer, running_upstream


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    with running_upstream() as running:
        yield running


@pytest.fixture(params=["http", "ws"])
def scheme(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    names = ("", "httpx", "httpcore", "websockets", "websockets.client", "asyncio")
    for name in names:
        caplog.set_level(logging.DEBUG, name or None)
    yield
    logged = [each.getMessage() + str(each.exc_info) for each in caplog.records]
    assert not any(secret in line for line in logged for secret in SECRETS)
