from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from networks.models import Tracer

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(name: str) -> Any:
    """Bring the tables of networks to a migration; return the model as it was then."""
    MigrationExecutor(connection).migrate([("networks", name)])
    loader = MigrationExecutor(connection).loader
    return loader.project_state([("networks", name)]).apps.get_model(
        "networks", "Network"
    )


@pytest.fixture
def newest() -> Iterator[str]:
    """Return the newest migration's name. Migrate to it after the test.

    Other apps are migrated as well, because their migrations depend on those of networks.
    """
    graph = MigrationExecutor(connection).loader.graph
    (name,) = [name for _, name in graph.leaf_nodes("networks")]
    yield name
    MigrationExecutor(connection).migrate(graph.leaf_nodes())


def test_network_that_offered_all_tracers_offers_the_new_ones(newest: str) -> None:
    new = {"keccak256PreimageTracer", "erc7562Tracer"}
    old = set(Tracer.values) - new
    add_network = migrate("0003_upstream_url_default").objects.create
    for slug, tracers in (("all", old), ("few", {"callTracer"})):
        add_network(
            slug=slug,
            chain_id=1,
            genesis={},
            genesis_hash=bytes(32),
            tracers=[*tracers],
        )
    found = migrate(newest).objects.values_list("slug", "tracers")
    assert {slug: set(tracers) for slug, tracers in found} == {
        "all": old | new,
        "few": {"callTracer"},
    }
    back = migrate("0003_upstream_url_default").objects.values_list("slug", "tracers")
    assert {slug: set(tracers) for slug, tracers in back} == {
        "all": old,
        "few": {"callTracer"},
    }


def test_upstream_url_becomes_an_upstream_and_back(newest: str) -> None:
    """The previous version can use only the first HTTP address of several upstreams."""
    networks = migrate("0004_opcode_tracers").objects
    for slug, url in (("one", "http://node/secret"), ("none", "")):
        networks.create(
            slug=slug, chain_id=1, genesis={}, genesis_hash=bytes(32), upstream_url=url
        )
    network = migrate(newest).objects.get(slug="one")
    (upstream,) = network.upstreams.all()
    assert (upstream.url, upstream.position) == ("http://node/secret", 0)
    assert (upstream.headers, upstream.is_enabled) == ({}, True)
    assert (network.agree, network.keep_side_blocks) == (1, None)
    network.upstreams.update(position=4)
    network.upstreams.create(url="ws://node", position=1)
    network.upstreams.create(url="http://off", position=2, is_enabled=False)
    network.upstreams.create(url="https://first", position=3)
    found = migrate("0004_opcode_tracers").objects.values_list("slug", "upstream_url")
    assert dict(found) == {"one": "https://first", "none": ""}
