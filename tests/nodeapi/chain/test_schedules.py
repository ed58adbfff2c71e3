"""Forks that `migrate` adds to stored networks with a built-in genesis."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection as django_connection
from django.db import transaction
from django.db.migrations.recorder import MigrationRecorder

from evm.public import PUBLIC_NETWORKS
from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network, stored_config

AMSTERDAM = 1_791_294_816
SEPOLIA, HOODI = (PUBLIC_NETWORKS[name].genesis() for name in ("sepolia", "hoodi"))


def migrated(genesis: dict[str, Any], **config: Any) -> tuple[list[str], Network]:
    """Migrate with a network whose stored config is this one.

    Return the sentences about it, and the network afterwards.
    """
    with importer_connection() as connection:
        network_id = open_network(connection, "net", genesis=genesis)
    network = Network.objects.get(pk=network_id)
    network.genesis["config"] = config
    network.save()
    out = StringIO()
    call_command("migrate", stdout=out)
    network.refresh_from_db()
    told = [line for line in out.getvalue().splitlines() if line.startswith("net: ")]
    return told, network


@pytest.mark.django_db(transaction=True)
def test_forks_that_the_config_lacks_are_added() -> None:
    known = SEPOLIA["config"]
    lacking = {**known, "blobSchedule": dict(known["blobSchedule"])}
    del lacking["bpo2Time"], lacking["amsterdamTime"], lacking["blobSchedule"]["bpo2"]
    told, network = migrated(SEPOLIA, **lacking)
    assert told == [
        f"net: amsterdamTime is {AMSTERDAM} now",
        f"net: bpo2Time is {known['bpo2Time']} now",
    ]
    assert network.genesis["config"] == known
    assert stored_config(network.pk).fork_at(2**40, AMSTERDAM, True).name == "amsterdam"


@pytest.mark.parametrize("time", [None, AMSTERDAM + 12])
@pytest.mark.django_db(transaction=True)
def test_a_fork_that_the_config_has_is_kept(time: int | None) -> None:
    own = {**SEPOLIA["config"], "amsterdamTime": time}
    told, network = migrated(SEPOLIA, **own)
    assert (told, network.genesis["config"]) == ([], own)


@pytest.mark.parametrize(
    ("genesis", "changes", "reason"),
    [
        (
            HOODI,
            {
                "cancunTime": ...,
                **dict.fromkeys(("pragueTime", "osakaTime", "bpo1Time", "bpo2Time")),
            },
            "the forks cancunTime can't be added: block 0 is after them",
        ),
        (
            SEPOLIA,
            {"bpo2Time": 2_000_000_000, "amsterdamTime": ...},
            "the forks amsterdamTime can't be added: amsterdamTime is at 1791294816, "
            "before bpo2Time at 2000000000",
        ),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_forks_that_do_not_fit_are_not_added(
    genesis: dict[str, Any], changes: dict[str, Any], reason: str
) -> None:
    own = genesis["config"] | changes
    own = {key: value for key, value in own.items() if value is not ...}
    told, network = migrated(genesis, **own)
    assert told == [f"net: {reason}"]
    assert network.genesis["config"] == own


@pytest.mark.parametrize("app", ["auth", "nodeapi"])
@pytest.mark.django_db(transaction=True)
def test_nothing_is_done_while_tables_are_missing(app: str) -> None:
    """As after `migrate nodeapi zero`: the signal is sent to all apps."""
    with importer_connection() as connection:
        network_id = open_network(connection, "net", genesis=SEPOLIA)
    network = Network.objects.get(pk=network_id)
    with transaction.atomic():
        del network.genesis["config"]["amsterdamTime"]
        network.save()
        Group.objects.all().delete()
        recorder = MigrationRecorder(django_connection)
        for label, name in recorder.applied_migrations():
            if label == app:
                recorder.record_unapplied(label, name)
        emit_post_migrate_signal(0, interactive=False, db="default")
        network.refresh_from_db()
        is_added = "amsterdamTime" in network.genesis["config"]
        assert is_added == (app != "nodeapi")
        assert Group.objects.exists() == (app != "auth")
        transaction.set_rollback(True)
