"""The rows that a follower writes about itself and its upstreams."""

from __future__ import annotations

import pytest
from eth_typing import Hash32

from evm.chain_config import ChainConfig
from networks.directory import UpstreamView
from networks.services import add_upstream
from nodeapi.follower.status import Situation, StatusWriter
from nodeapi.follower.watcher import Expected, Watcher
from nodeapi.models import FollowerStatus, UpstreamStatus
from tests.support.rows import make_network
from tests.support.simulator import genesis_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_upstream_that_was_deleted_does_not_stop_the_follower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The follower learns of it up to a second later."""
    monkeypatch.setattr("nodeapi.follower.status.WRITE_SECONDS", 0.0)
    network = make_network("net")
    expected = Expected(ChainConfig.from_genesis(genesis_of()), Hash32(bytes(32)))
    rows = [
        add_upstream(network=network, url=f"http://127.0.0.1:{port}") for port in (9, 7)
    ]
    kept, gone = (
        Watcher(UpstreamView(row.pk, row.url, {}), expected, lambda: 0, lambda: None)
        for row in rows
    )
    rows[1].delete()
    status = StatusWriter(network.pk)
    status.write(Situation(None, None, "first"), [kept, gone])
    assert FollowerStatus.objects.get(network=network).alarm == "first"
    status.write(Situation(None, None, "second"), [kept])
    assert FollowerStatus.objects.get(network=network).alarm == "second"
    assert UpstreamStatus.objects.get().upstream_id == kept.upstream.id
