from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.upstream_server import UpstreamServer, running_upstream


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    with running_upstream() as running:
        yield running


@pytest.fixture(params=["http", "ws"])
def scheme(request: pytest.FixtureRequest) -> str:
    return request.param
