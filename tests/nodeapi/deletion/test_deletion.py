"""Deletion of a network: what it deletes, what it keeps, and interruptions."""

from __future__ import annotations

import threading
from io import StringIO

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.utils.timezone import now
from eth_typing import Address

from config.management.followers import deleted_networks
from evm.proved_state import ProvedValues
from keys.models import (
    AccessRequest,
    ApiKey,
    DailyUse,
    Entitlement,
    KeyVersionUse,
    UsageBucket,
    UsageTotal,
    User,
)
from keys.services import IssuedKey, issue_key, request_access, update_key
from keys.usage.daily import today
from networks.models import Network, NetworkDeletion, NetworkState
from networks.services import add_upstream, change_state, configure_network
from nodeapi.chain.database import import_lock, importer_connection
from nodeapi.chain.networks import NetworkMismatch
from nodeapi.deletion import job, tables
from nodeapi.deletion.job import DeletionFailed, run_deletion
from nodeapi.deletion.progress import TableProgress, decode
from nodeapi.deletion.requests import (
    request_deletion,
    single_network_keys,
    tables_of,
)
from nodeapi.models import AbiEntry, Block, ContractAbi, UpstreamStatus
from nodeapi.proofs.values import head_anchor, insert_values
from tests.support import chains, copies, sample
from tests.support.usage import add_usage
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS = 12


@pytest.fixture
def networks() -> tuple[Network, Network]:
    """Return two networks with the same blocks, the second one retired."""

    def make() -> None:
        for slug in ("kept", "gone"):
            chains.import_blocks(slug, sample.genesis(), sample.raw_blocks()[:BLOCKS])

    copies.once("kept and gone", make)
    kept, gone = Network.objects.order_by("id")
    change_state(network=gone, state=NetworkState.RETIRED)
    return kept, gone


@pytest.fixture
def keys(networks: tuple[Network, Network]) -> list[IssuedKey]:
    """Return a key for both networks, one for the second only, and one for all."""
    owner = User.objects.create_user("owner@example.org")
    kept, gone = networks
    issued = [
        issue_key(owner=owner, name=name, networks=opened, may_trace=True)
        for name, opened in (("both", [kept, gone]), ("one", [gone]), ("all", []))
    ]
    for one in issued:
        for network in (kept, gone):
            if network in (one.api_key.networks.all() or networks):
                add_usage(one.api_key, network)
    used = KeyVersionUse.objects.create
    used(version=issued[0].version, last_network=gone, last_used_at=now())
    used(version=issued[1].version, last_network=kept, last_used_at=now())
    DailyUse.objects.create(
        day=today(), api_key=issued[0].api_key, calls=4, failed=0, credits=80
    )
    request_access(api_key=issued[1].api_key, network=gone, reason="to debug")
    configure_network(network=gone, host_names=["gone.example"])
    upstream = add_upstream(network=gone, url="http://node.example")
    UpstreamStatus.objects.create(upstream=upstream)
    for network in (kept, gone):
        abi = ContractAbi.objects.create(network=network, address=b"", name="A", size=1)
        AbiEntry.objects.create(abi=abi, key=b"1234", line="function f()")
    return issued


def delete(network: Network) -> None:
    request_deletion(network, requested_by="staff@example.org")
    assert run_deletion(network.pk, threading.Event())


def left_of(network_id: int) -> dict[str, int]:
    """Return the number of rows that still refer to a network, by model."""
    found = {}
    for relation in Network._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ManyToOneRel):
            model, name = relation.related_model, relation.field.attname
            count = model._default_manager.filter(**{name: network_id}).count()
            found[str(model._meta.db_table)] = count
    return {table: count for table, count in found.items() if count}


def test_deletion_removes_every_row_of_the_network_and_no_other(
    networks: tuple[Network, Network], keys: list[IssuedKey]
) -> None:
    kept, gone = networks
    before, codes = chains.rows("kept"), chains.codes()
    assert chains.rows("gone").keys() == before.keys()
    blocks = Block.objects.filter(network=kept).count()
    delete(gone)
    assert left_of(gone.pk) == {}
    assert list(Network.objects.all()) == [kept]
    assert chains.rows("kept") == before
    assert chains.codes() == codes
    assert chains.audit_all("kept") == BLOCKS + 1
    assert Block.objects.count() == blocks
    with connection.cursor() as cursor:
        for table in ("nodeapi_transaction", "nodeapi_transactionrecord"):
            cursor.execute(
                f"SELECT count(*) FROM {table} WHERE block_id NOT IN"
                " (SELECT id FROM nodeapi_block)"
            )
            assert cursor.fetchone() == (0,), table
    assert not UpstreamStatus.objects.exists()
    assert AbiEntry.objects.count() == ContractAbi.objects.count() == 1
    assert UsageBucket.objects.filter(network=kept).count() == 2 * 3
    assert UsageTotal.objects.filter(network=kept).exists()
    assert DailyUse.objects.count() == 1
    assert not AccessRequest.objects.exists()
    assert Entitlement.objects.filter(network=kept).count() == 2
    uses = KeyVersionUse.objects.order_by("version_id")
    assert [use.last_network for use in uses] == [None, kept]


def test_key_without_another_network_does_not_open_all_networks(
    networks: tuple[Network, Network], keys: list[IssuedKey]
) -> None:
    _, gone = networks
    assert single_network_keys(gone) == (1, True)
    delete(gone)
    states = ApiKey.objects.order_by("id").values_list("name", "is_enabled")
    assert list(states) == [("both", True), ("one", False), ("all", True)]
    event = keys[1].api_key.events.get(type="key.disabled")
    assert event.data == {"reason": "its only network, gone, was deleted"}


def test_key_of_networks_that_are_deleted_together_does_not_open_all_networks(
    networks: tuple[Network, Network], keys: list[IssuedKey]
) -> None:
    first, second = networks
    change_state(network=first, state=NetworkState.RETIRED)
    request_deletion(first)
    assert single_network_keys(second) == (2, True)
    request_deletion(second)

    def report(progress: list[TableProgress]) -> None:
        """Run the whole deletion of the second network during that of the first."""
        if Network.objects.filter(pk=second.pk).exists():
            assert run_deletion(second.pk, threading.Event())

    assert run_deletion(first.pk, threading.Event(), report)
    states = ApiKey.objects.order_by("id").values_list("name", "is_enabled")
    assert list(states) == [("both", False), ("one", False), ("all", True)]


def test_key_that_is_restricted_during_the_deletion_does_not_open_all_networks(
    networks: tuple[Network, Network], keys: list[IssuedKey]
) -> None:
    _, gone = networks
    request_deletion(gone)

    def report(progress: list[TableProgress]) -> None:
        blocks = next(one for one in progress if one.table == "nodeapi_block")
        if not blocks.is_done:
            update_key(api_key=keys[0].api_key, networks=[gone])

    assert run_deletion(gone.pk, threading.Event(), report)
    assert not keys[0].api_key.networks.exists()
    keys[0].api_key.refresh_from_db()
    assert not keys[0].api_key.is_enabled


def test_record_names_the_deleted_rows(
    networks: tuple[Network, Network], keys: list[IssuedKey]
) -> None:
    _, gone = networks
    stated = {one.table: one for one in tables_of(gone)}
    assert stated["nodeapi_block"].about == BLOCKS + 1
    assert stated["nodeapi_transactionrecord"].about > 0
    assert all(one.is_exact for one in stated.values())
    delete(gone)
    record = NetworkDeletion.objects.get()
    assert (record.slug, record.requested_by) == ("gone", "staff@example.org")
    assert record.network is None
    assert record.finished_at is not None
    for one in decode(record.tables):
        assert one.is_done, one.table
        assert one.deleted == stated[one.table].about, one.table


def test_interrupted_deletion_continues_and_counts_each_row_once(
    networks: tuple[Network, Network],
    keys: list[IssuedKey],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 20)
    monkeypatch.setattr(tables, "WINDOW_ROWS", 2)
    _, gone = networks
    before = chains.rows("kept")
    request_deletion(gone)
    stated = {one.table: one.about for one in tables_of(gone)}

    class Killed(Exception):
        """Raised to end a run after some batches."""

    def run(batches: int) -> None:
        def report(progress: list[TableProgress]) -> None:
            nonlocal batches
            batches -= 1
            if not batches:
                raise Killed

        run_deletion(gone.pk, threading.Event(), report)

    runs = 0
    while Network.objects.filter(pk=gone.pk).exists():
        runs += 1
        assert runs < 1_000
        try:
            run(runs % 7 + 1)
        except Killed:
            assert deleted_networks() == {"gone"}
    assert runs > 5
    assert chains.rows("kept") == before
    assert left_of(gone.pk) == {}
    for one in decode(NetworkDeletion.objects.get().tables):
        assert one.deleted == stated[one.table], one.table
    assert deleted_networks() == set()


def test_rows_that_arrive_late_are_deleted_too(
    networks: tuple[Network, Network], keys: list[IssuedKey]
) -> None:
    _, gone = networks
    request_deletion(gone)
    has_arrived = False

    def report(progress: list[TableProgress]) -> None:
        nonlocal has_arrived
        if not has_arrived and all(one.is_done for one in progress):
            has_arrived = True
            add_usage(keys[2].api_key, gone)

    assert run_deletion(gone.pk, threading.Event(), report)
    assert has_arrived
    assert left_of(gone.pk) == {}


def test_deletion_gives_up_if_rows_keep_arriving(
    networks: tuple[Network, Network],
    keys: list[IssuedKey],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job, "PASSES", 2)
    _, gone = networks
    request_deletion(gone)

    def report(progress: list[TableProgress]) -> None:
        if all(one.is_done for one in progress):
            add_usage(keys[2].api_key, gone)

    with pytest.raises(DeletionFailed):
        run_deletion(gone.pk, threading.Event(), report)
    assert run_deletion(gone.pk, threading.Event())


def test_deletion_is_refused_while_the_network_is_in_use(
    networks: tuple[Network, Network],
) -> None:
    kept, gone = networks
    with pytest.raises(ValidationError, match="Retire it first"):
        request_deletion(kept)
    with (
        importer_connection() as other,
        import_lock(other, gone.pk),
        pytest.raises(
            ValidationError, match="A follower or an import is still writing"
        ),
    ):
        request_deletion(gone)
    assert not NetworkDeletion.objects.exists()
    request_deletion(gone)
    with pytest.raises(ValidationError, match="is already being deleted"):
        request_deletion(gone)
    with pytest.raises(NetworkMismatch, match="is being deleted"):
        chains.import_blocks("gone", sample.genesis(), [])
    gone.refresh_from_db()
    assert (gone.head_number, gone.head_hash) == (None, None)


def test_job_waits_for_a_follower_that_is_ending(
    networks: tuple[Network, Network],
) -> None:
    _, gone = networks
    request_deletion(gone)
    with importer_connection() as other:
        with import_lock(other, gone.pk):
            done: list[bool] = []

            def delete_and_leave() -> None:
                done.append(run_deletion(gone.pk, threading.Event()))
                connection.close()

            run = threading.Thread(target=delete_and_leave)
            run.start()
            assert NetworkDeletion.objects.get().updated_at is None
        run.join(PATIENCE_SECONDS)
    assert done == [True]


def test_deletion_waits_for_proved_values_that_are_being_stored(
    networks: tuple[Network, Network],
) -> None:
    _, gone = networks
    Network.objects.filter(pk=gone.pk).update(checkpoint_number=BLOCKS - 2)
    proved = ProvedValues({Address(b"\x77" * 20): None}, {(Address(bytes(20)), 1): 0})
    with importer_connection() as web, importer_connection() as late:
        anchor = head_anchor(web, gone.pk)
        request_deletion(gone)
        with web.transaction():
            insert_values(web, gone.pk, anchor, proved)

            def delete_and_leave() -> None:
                run_deletion(gone.pk, threading.Event())
                connection.close()

            run = threading.Thread(target=delete_and_leave)
            run.start()
            wait_until(
                lambda: (
                    not run.is_alive()
                    or late.execute(
                        "SELECT 1 FROM pg_locks WHERE NOT granted"
                    ).fetchone()
                )
            )
        run.join(PATIENCE_SECONDS)
        insert_values(late, gone.pk, anchor, proved)
    assert left_of(gone.pk) == {}


def test_command_states_asks_and_deletes(
    networks: tuple[Network, Network],
    keys: list[IssuedKey],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(*options: str) -> str:
        stdout = StringIO()
        call_command("delete_network", *options, stdout=stdout)
        return stdout.getvalue()

    with pytest.raises(CommandError, match="Retire it first"):
        run("kept", "--noinput")
    with pytest.raises(CommandError, match="there is no network 'other'"):
        run("other", "--noinput")
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    with pytest.raises(CommandError, match="cancelled, nothing was deleted"):
        run("gone")
    assert "no deletion is in progress" in run("gone", "--resume")
    monkeypatch.setattr("builtins.input", lambda _: "gone")
    printed = run("gone")
    assert f"{BLOCKS + 1}  nodeapi_block" in printed
    assert "disabled: 1" in printed
    assert printed.endswith("gone: deleted\n")
    assert not Network.objects.filter(slug="gone").exists()


def test_further_tables_are_deleted_with_these_rows() -> None:
    """A model that refers to rows of a network has to be deleted before them."""
    found = set()
    for relation in Network._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ManyToOneRel):
            for further in relation.related_model._meta.get_fields(include_hidden=True):
                if isinstance(further, models.ManyToOneRel):
                    found.add((relation.related_model, further.related_model))
    stated = {rows.model for rows in tables.all_rows()} | {UpstreamStatus}
    assert {child for _, child in found} <= stated
    # The key of a parent is `id`, and its own children would need another level.
    for parent, child in found:
        assert parent._meta.pk.name == "id"
        further = child._meta.get_fields(include_hidden=True)
        assert not [one for one in further if isinstance(one, models.ManyToOneRel)]
