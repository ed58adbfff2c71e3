"""A real geth that makes a block each second, and the service that follows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden.geth import GethError
from tests.live import programs
from tests.live.mirror import Mirror
from tests.live.nodes import Geth
from tests.live.service import Service, serving
from tests.live.traffic import Traffic


@dataclass
class Followed:
    """geth, the service that follows it, a subscriber, and senders of transactions."""

    geth: Geth
    service: Service
    mirror: Mirror
    traffic: Traffic
    first_head: int
    """The service's newest block when it began to follow."""


@pytest.fixture(scope="session")
def live_blocks() -> int:
    """Return the number of blocks to follow. Without it, these tests are skipped."""
    blocks = os.environ.get("LIVE_BLOCKS")
    if not blocks:
        pytest.skip("`make test-live` runs these tests")
    return int(blocks)


@pytest.fixture(scope="module")
def followed(
    live_blocks: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Followed]:
    try:
        binary = programs.geth()
    except GethError as error:
        pytest.skip(str(error))
    folder: Path = tmp_path_factory.mktemp("geth")
    with closing(Geth(binary, folder)) as geth:
        geth.start()
        upstreams = [geth.socket_url, geth.url]
        log = folder / "service.log"
        with serving(geth.genesis(), upstreams, log) as service:
            traffic, first_head = Traffic(service, geth), service.head()
            with closing(Mirror(service.socket_url)) as mirror:
                traffic.prepare()
                yield Followed(geth, service, mirror, traffic, first_head)
