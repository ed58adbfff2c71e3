"""Blocks of a real chain are imported once, completely and verified."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from evm.blocks import decode_block, encode_block
from evm.chain_config import UnsupportedFork
from evm.errors import InvalidBlock
from nodeapi.chain.audit import AuditFailure, audit_block
from nodeapi.chain.database import ImportRunning, import_lock, importer_connection
from nodeapi.chain.errors import UnknownParent
from nodeapi.chain.forkchoice import parse_forkchoice
from nodeapi.chain.networks import NetworkMismatch, open_network
from tests.support import chains, execution_apis
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_block_is_imported_and_rebuilt_from_its_rows() -> None:
    forkchoice = parse_forkchoice(
        (execution_apis.folder() / "headfcu.json").read_text()
    )
    raw = execution_apis.raw_blocks()
    chains.import_blocks(
        "hive", execution_apis.genesis(), raw, forkchoice=forkchoice, batch_blocks=64
    )
    assert chains.head("hive") == (54, forkchoice.head)
    assert chains.audit_all("hive") == 55


def test_the_rows_do_not_depend_on_the_size_of_batches() -> None:
    genesis, raw = execution_apis.genesis(), execution_apis.raw_blocks()
    found = []
    for batch_blocks in (1, 7, 64):
        slug = f"by-{batch_blocks}"
        chains.import_blocks(slug, genesis, raw, batch_blocks=batch_blocks)
        found.append(chains.rows(slug))
    assert found[0] == found[1] == found[2]


def test_importing_again_changes_nothing() -> None:
    genesis, raw = execution_apis.genesis(), execution_apis.raw_blocks()
    chains.import_blocks("hive", genesis, raw)
    before = chains.rows("hive")
    with chains.importer("hive", genesis) as importer:
        assert [importer.add(block) for block in raw] == [None] * len(raw)
        importer.commit()
    assert chains.rows("hive") == before


def test_networks_of_the_same_blocks_do_not_mix() -> None:
    genesis, raw = execution_apis.genesis(), execution_apis.raw_blocks()
    chains.import_blocks("first", genesis, raw[:30])
    chains.import_blocks("second", genesis, raw[:20])
    chains.import_blocks("first", genesis, raw[30:40])
    assert chains.head("first")[0] == 40
    assert chains.head("second")[0] == 20
    assert (chains.audit_all("first"), chains.audit_all("second")) == (41, 21)


BROKEN = [
    ("state_root", bytes(32)),
    ("receipts_root", bytes(32)),
    ("transactions_root", bytes(32)),
    ("logs_bloom", b"\x01" * 256),
    ("gas_used", 1),
    ("base_fee_per_gas", 1),
    ("withdrawals_root", bytes(32)),
    ("requests_hash", bytes(32)),
    ("blob_gas_used", 131_072),
    ("timestamp", 0),
    ("gas_limit", 90_000_000),
    ("difficulty", 1),
]
"""Members of a header, and wrong values for them."""


def test_a_block_that_breaks_a_promise_is_refused_by_name() -> None:
    raw = execution_apis.raw_blocks()
    block = decode_block(raw[-1])
    with chains.importer("hive", execution_apis.genesis()) as importer:
        for good in raw[:-1]:
            importer.add(good)
        for field, value in BROKEN:
            wrong = replace(block, header=replace(block.header, **{field: value}))
            with pytest.raises(InvalidBlock) as refusal:
                importer.add(encode_block(wrong))
            assert refusal.value.number == block.header.number
            assert refusal.value.hash == wrong.header.hash
            assert refusal.value.field == field.replace("_", " ")
            # The blocks before it are kept, and the valid block can still be added.
            assert chains.head("hive")[0] == block.header.number - 1
        importer.add(raw[-1])
        importer.commit()
    assert chains.audit_all("hive") == len(raw) + 1


def test_a_transaction_that_may_not_stand_there_is_named() -> None:
    raw = execution_apis.raw_blocks()
    block = decode_block(raw[1])
    doubled = replace(block, transactions=(*block.transactions, block.transactions[0]))
    with chains.importer("hive", execution_apis.genesis()) as importer:
        importer.add(raw[0])
        with pytest.raises(InvalidBlock, match="transactions root"):
            importer.add(encode_block(doubled))


def test_a_block_without_its_parent_is_refused() -> None:
    raw = execution_apis.raw_blocks()
    with chains.importer("hive", execution_apis.genesis()) as importer:
        importer.add(raw[0])
        with pytest.raises(UnknownParent, match="unknown ancestor 0x"):
            importer.add(raw[5])
    assert chains.head("hive")[0] == 1


def test_only_one_importer_may_run_for_a_network() -> None:
    genesis = execution_apis.genesis()
    with chains.importer("hive", genesis):
        with pytest.raises(ImportRunning), chains.importer("hive", genesis):
            pytest.fail("a second importer got the lock")
        with chains.importer("another", genesis):
            pass
    with chains.importer("hive", genesis):
        pass


def test_a_network_keeps_its_genesis() -> None:
    genesis = execution_apis.genesis()
    chains.import_blocks("hive", genesis, [])
    other = {**genesis, "timestamp": "0x1"}
    with (
        importer_connection() as connection,
        pytest.raises(NetworkMismatch, match="has the genesis 0x"),
    ):
        open_network(connection, "hive", genesis=other)


def test_a_fork_that_is_past_can_not_be_moved_but_one_to_come_can() -> None:
    genesis = execution_apis.genesis()
    chains.import_blocks("hive", genesis, execution_apis.raw_blocks()[:30])
    later = {**genesis, "config": {**genesis["config"], "bpo2Time": 1_000}}
    chains.import_blocks("hive", later, [])
    moved = {**genesis, "config": {**genesis["config"], "londonBlock": 28}}
    with (
        importer_connection() as connection,
        pytest.raises(NetworkMismatch, match="another genesis config"),
    ):
        open_network(connection, "hive", genesis=moved)


def test_a_genesis_under_a_fork_that_we_lack_is_refused_by_name() -> None:
    genesis = execution_apis.genesis()
    genesis["config"]["futureBlock"] = 0
    with pytest.raises(UnsupportedFork, match="block 0 needs future"):
        chains.import_blocks("hive", genesis, [])


def test_the_audit_finds_a_row_that_is_wrong() -> None:
    chains.import_blocks(
        "hive", execution_apis.genesis(), execution_apis.raw_blocks()[:10]
    )
    with importer_connection() as connection:
        network = chains.network_id(connection, "hive")
        audit_block(connection, network, 10)
        for damage in (
            "UPDATE nodeapi_accountversion SET balance = balance + 1"
            " WHERE block_number = 9",
            "UPDATE nodeapi_storageversion SET value = '\\x01' WHERE block_number <= 9",
            "DELETE FROM nodeapi_accountversion WHERE block_number = 8",
        ):
            with connection.transaction(force_rollback=True):
                assert connection.execute(damage).rowcount
                with pytest.raises(AuditFailure):
                    audit_block(connection, network, 10)


def test_the_lock_is_free_again_when_its_connection_ends() -> None:
    chains.import_blocks("hive", execution_apis.genesis(), [])
    with importer_connection() as first, importer_connection() as second:
        network = chains.network_id(first, "hive")
        with import_lock(first, network):
            first.close()
        # PostgreSQL frees the lock shortly after the connection was closed.
        wait_until(lambda: is_free(second, network))


def test_a_second_importer_can_wait_for_the_lock_without_holding_anything_up() -> None:
    chains.import_blocks("hive", execution_apis.genesis(), [])
    got = threading.Event()
    with importer_connection() as first, importer_connection() as second:
        network = chains.network_id(first, "hive")

        def stand_by() -> None:
            with import_lock(second, network, wait=True):
                got.set()

        standby = threading.Thread(target=stand_by)
        with import_lock(first, network):
            standby.start()
            # This statement waits for all older snapshots.
            first.execute("SET lock_timeout = '60s'")
            for _ in range(3):
                first.execute(
                    "CREATE INDEX CONCURRENTLY for_a_while ON nodeapi_block (number)"
                )
                first.execute("DROP INDEX CONCURRENTLY for_a_while")
            assert not got.is_set()
        standby.join(PATIENCE_SECONDS)
        assert got.is_set()


def is_free(connection: psycopg.Connection[Any], network: int) -> bool:
    try:
        with import_lock(connection, network):
            return True
    except ImportRunning:
        return False
