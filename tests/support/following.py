"""Rows of a followed network, as its follower would write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from networks.models import Network, Upstream
from networks.services import add_upstream
from nodeapi.models.following import (
    FollowerStatus,
    ImportTiming,
    QuarantinedBlock,
    Reorganisation,
    UpstreamStatus,
)
from tests.support.rows import add_block, hash_of, make_network


def followed_network(slug: str = "live", *, url: str, best: int = 12) -> Network:
    """Make a network with blocks 0 to 9, of which 7 is safe and 5 finalized.

    url: of its upstream, which reports the block `best`.
    """
    names = [f"{slug}-{number}" for number in range(10)]
    network = make_network(
        slug,
        head_number=9,
        head_hash=hash_of(names[9]),
        safe_hash=hash_of(names[7]),
        finalized_hash=hash_of(names[5]),
    )
    for number, name in enumerate(names):
        add_block(network, name, number, names[number - 1] if number else "")
    now = datetime.now(UTC)
    FollowerStatus.objects.create(
        network=network,
        process_started_at=now - timedelta(minutes=10),
        updated_at=now,
        best_number=best,
        best_hash=hash_of("best"),
    )
    add_upstream(network=network, url=url)
    UpstreamStatus.objects.create(
        upstream=Upstream.objects.get(network=network),
        head_number=best,
        head_hash=hash_of("best"),
        latency_ms=250.0,
        requests=100,
        errors=3,
        checked_at=now,
    )
    return network


def add_import(network: Network, number: int, **fields: object) -> None:
    """Add the timing of a block: 20 ms, 300 ms, 5 ms."""
    values = {
        **{"fetch_ms": 20.0, "execute_ms": 300.0, "commit_ms": 5.0},
        **{"transactions": 2, "gas_used": 42_000},
        **fields,
    }
    ImportTiming.objects.create(network=network, number=number, **values)


def add_reorganisation(network: Network, depth: int) -> None:
    """Add a reorganisation that removed some blocks and added one more."""
    Reorganisation.objects.create(
        network=network,
        fork_number=9 - depth,
        old_hash=hash_of("old"),
        new_hash=hash_of("new"),
        depth=depth,
        added=depth + 1,
    )


def add_quarantined(network: Network, name: str) -> None:
    """Add an invalid block of the network's upstream."""
    QuarantinedBlock.objects.create(
        network=network,
        hash=hash_of(name),
        number=10,
        upstream=network.upstreams.get(),
        reason="the state root differs",
    )
