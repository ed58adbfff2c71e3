from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

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
    """Name the newest migration, and come back to it in the end.

    Other apps come back as well, because their migrations may depend on those of keys.
    """
    graph = MigrationExecutor(connection).loader.graph
    (name,) = [name for _, name in graph.leaf_nodes("keys")]
    yield name
    MigrationExecutor(connection).migrate(graph.leaf_nodes())


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


SUMS = ("calls", "credits", "duration_us", "bytes_out", "latencies")
NAMES = ("span", "start", "network_id", "method", "outcome")

Sums = dict[tuple[Any, ...], list[int]]


def write(model: Any, rows: Sums) -> None:
    """Write rows by NAMES, with the key in front if they are of one."""
    for row, counts in rows.items():
        key = {"api_key_id": row[0]} if len(row) > len(NAMES) else {}
        model.objects.create(
            **key,
            **dict(zip(NAMES, row[-len(NAMES) :], strict=True)),
            **dict(zip(SUMS, (*counts[:4], counts[4:]), strict=True)),
        )


def read(model: Any, *first: str) -> Sums:
    return {
        row[: -len(SUMS)]: [*row[-5:-1], *row[-1]]
        for row in model.objects.values_list(*first, *NAMES, *SUMS)
    }


def add_up(rows: Sums, *spans: int) -> Sums:
    """Return rows once for each of some spans, those of longer spans without them."""
    sums: Sums = {}
    for (*key, span, start, network, method, outcome), counts in rows.items():
        for longer in spans:
            if longer < span:
                continue
            since = start - (start - datetime.min.replace(tzinfo=UTC)) % timedelta(
                seconds=longer
            )
            row = (*key, longer, since, network, method, outcome)
            known = sums.get(row, [0] * len(counts))
            sums[row] = [a + b for a, b in zip(known, counts, strict=True)]
    return sums


def of_old(keys: list[int], networks: list[int]) -> Sums:
    """Return rows as `rollup_usage` left them: each call in one, of which span ever.

    On the day and in the hour where the spans meet there are rows of both.
    """
    chance = random.Random(7)
    now = timezone.now().replace(second=0, microsecond=0)
    rows: Sums = {}
    for _ in range(600):
        minutes = chance.choice((12, 400, 4000, 132_000))
        moment = now - timedelta(minutes=chance.randrange(minutes))
        span = 60 if now - moment < timedelta(hours=6) else 3600
        span = span if now - moment < timedelta(days=90) else 86_400
        latencies = [chance.randrange(9) for _ in range(12)]
        counts = [sum(latencies), *(chance.randrange(999) for _ in range(3))]
        names = chance.choice(networks), chance.choice("ab"), chance.choice(["ok", "x"])
        one = {(chance.choice(keys), 1, moment, *names): [*counts, *latencies]}
        for row, more in add_up(one, span).items():
            known = rows.get(row, [0] * len(more))
            rows[row] = [a + b for a, b in zip(known, more, strict=True)]
    return rows


def test_usage_of_old_is_in_every_tier(newest: str) -> None:
    old = migrate("0015_state_indexes")
    add_network = old.get_model("networks", "Network").objects.create
    networks = [
        add_network(slug=slug, chain_id=1, genesis={}, genesis_hash=bytes(32)).pk
        for slug in ("alpha", "beta")
    ]
    owner = old.get_model("keys", "User").objects.create(email="o@example.org")
    add_key = old.get_model("keys", "ApiKey").objects.create
    keys = [add_key(owner=owner, name=name).pk for name in ("one", "two")]
    rows = of_old(keys, networks)
    write(old.get_model("keys", "UsageBucket"), rows)
    together: Sums = defaultdict(lambda: [0] * 16)
    for (_, *row), counts in rows.items():
        together[tuple(row)] = [
            a + b for a, b in zip(together[tuple(row)], counts, strict=True)
        ]
    write(old.get_model("keys", "UsageTotal"), together)

    new = migrate(newest)
    tiers = (60, 3600, 86_400)
    buckets, totals = (
        new.get_model("keys", f"Usage{name}") for name in ("Bucket", "Total")
    )
    assert read(buckets, "api_key_id") == add_up(rows, *tiers)
    assert read(totals) == add_up(together, *tiers)
    back = migrate("0015_state_indexes").get_model("keys", "UsageBucket")
    assert read(back, "api_key_id") == add_up(rows, 86_400)
    migrate(newest)
    assert read(buckets, "api_key_id") == add_up(rows, 86_400)


def test_keys_that_customers_have_not_created_themselves_are_issued_by_staff(
    newest: str,
) -> None:
    old = migrate("0017_opcode_tracers")
    users = old.get_model("keys", "User").objects
    owner, staff = (users.create(email=f"{name}@example.org") for name in "os")
    add_key = old.get_model("keys", "ApiKey").objects.create
    for name, creator in (("own", owner), ("staff", staff), ("command", None)):
        add_key(owner=owner, name=name, created_by=creator)

    issued = migrate(newest).get_model("keys", "ApiKey").objects
    names = issued.filter(is_issued_by_staff=True).values_list("name", flat=True)
    assert set(names) == {"staff", "command"}
