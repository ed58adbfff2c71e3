from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(name: str) -> Any:
    """Bring the tables of keys to a migration; return the models as they were then."""
    executor = MigrationExecutor(connection)
    executor.migrate([("keys", name)])
    loader = MigrationExecutor(connection).loader
    # The tables of networks stay the newest.
    nodes = [("keys", name), *loader.graph.leaf_nodes("networks")]
    return loader.project_state(nodes).apps


@pytest.fixture
def newest() -> Iterator[str]:
    """Name the newest migration, and come back to it in the end."""
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes("keys")
    (name,) = [name for _, name in leaves]
    yield name
    migrate(name)


def test_key_that_might_trace_keeps_doing_so_on_its_networks(newest: str) -> None:
    old = migrate("0001_initial")
    add_network = old.get_model("networks", "Network").objects.create
    alpha, beta = [
        add_network(slug=slug, chain_id=1, genesis={}, genesis_hash=bytes(32))
        for slug in ("alpha", "beta")
    ]
    owner = old.get_model("keys", "User").objects.create(email="o@example.org")
    add_key = old.get_model("keys", "ApiKey").objects.create
    add_key(owner=owner, name="everywhere", may_trace=True)
    add_key(owner=owner, name="beta alone", may_trace=True).networks.set([beta])
    add_key(owner=owner, name="never").networks.set([alpha])

    entitlements = migrate(newest).get_model("keys", "Entitlement").objects
    granted = entitlements.values_list(
        "api_key__name", "network__slug", "capability", "tracers", "expires_at"
    )
    assert sorted(granted) == [
        ("beta alone", "beta", "trace", [], None),
        ("everywhere", "alpha", "trace", [], None),
        ("everywhere", "beta", "trace", [], None),
    ]
    back = migrate("0001_initial").get_model("keys", "ApiKey").objects
    may_trace = back.filter(may_trace=True).values_list("name", flat=True)
    assert set(may_trace) == {"everywhere", "beta alone"}
