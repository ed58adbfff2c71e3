"""States within blocks, from access lists and by executing the transactions before."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from evm.block_access_list import decode_access_list
from evm.tracers.record import pack
from evm.tracers.struct_log import StructLogger, StructLogOptions
from evm.world import NO_ACCOUNT, World
from networks.models import Network
from nodeapi.chain.access_lists import read_access_list
from nodeapi.chain.database import importer_connection
from nodeapi.chain.listed_state import replay_before
from nodeapi.chain.networks import stored_config
from nodeapi.chain.replay import Origin, Replay, find_origin
from nodeapi.chain.replay_counts import counts
from nodeapi.models import Block, BlockAccessList
from tests.support import amsterdam


@pytest.fixture(scope="module", autouse=True)
def networks(module_db: None) -> None:
    amsterdam.import_with_sample()


def origin_of(
    connection: psycopg.Connection[Any], network: Network, block: Block
) -> Origin:
    config = stored_config(network.pk)
    return find_origin(connection, network.pk, config, bytes(block.hash))


def assert_same_state(
    found: World, expected: World, keys: list[tuple[bytes, set[int]]]
) -> None:
    for address, slots in keys:
        account = found.account(address) or NO_ACCOUNT
        assert account == (expected.account(address) or NO_ACCOUNT)
        assert found.code(account.code_hash) == expected.code(account.code_hash)
        for slot in slots:
            assert found.get_storage(address, slot) == expected.get_storage(
                address, slot
            ), (address.hex(), slot)


@pytest.mark.parametrize("slug", ["sample", "amsterdam"])
def test_states_before_all_transactions_are_those_of_execution(slug: str) -> None:
    network, compared = Network.objects.get(slug=slug), 0
    missing = counts.missing
    with importer_connection() as connection:
        for block in Block.objects.filter(network=network, transaction_count__gt=1):
            origin = origin_of(connection, network, block)
            row = read_access_list(connection, network.pk, bytes(block.hash))
            assert row is not None
            keys = [
                (
                    one.address,
                    {*one.storage, *one.reads, *origin.state.live_slots(one.address)},
                )
                for one in decode_access_list(row.list)
            ]
            executed = Replay(origin)
            for index in range(1, block.transaction_count):
                executed.skip()
                used = counts.from_lists
                found = replay_before(connection, network.pk, origin, index)
                if counts.from_lists == used:
                    assert not origin.fork.clears_empty_accounts
                    continue
                compared += 1
                assert found.log_count == executed.log_count
                assert_same_state(found.world, executed.world, keys)
                replay_before(connection, network.pk, origin, index, own=1).skip()
                assert counts.missing == missing
    assert compared > 50


@pytest.mark.parametrize("own", [1, 2])
def test_value_that_the_list_lacks_is_executed_and_counted(own: int) -> None:
    network = Network.objects.get(slug="amsterdam")
    block = Block.objects.get(network=network, number=10)
    last = block.transaction_count - own
    listed = BlockAccessList.objects.get(block=block)
    with importer_connection() as connection:
        origin = origin_of(connection, network, block)
        expected = logged(replay_before(connection, network.pk, origin, last, own=own))
        BlockAccessList.objects.filter(block=block).update(list=pack(b"\xc0"))
        before = counts.missing
        origin = origin_of(connection, network, block)
        found = logged(replay_before(connection, network.pk, origin, last, own=own))
    listed.save()
    assert found == expected
    assert counts.missing == before + 1


def logged(replay: Replay) -> bytes:
    """Return the struct logger's result for the next transaction."""
    pieces: list[bytes] = []
    logger = StructLogger(StructLogOptions(), pieces.append)
    replay.trace(logger, 60)
    end = logger.result()
    return b"".join([*pieces, end])


def test_traces_are_the_same_with_and_without_list() -> None:
    network = Network.objects.get(slug="amsterdam")
    block = Block.objects.get(network=network, number=10)
    last = block.transaction_count - 1
    with importer_connection() as connection:
        origin = origin_of(connection, network, block)
        before = counts.by_execution
        found = logged(replay_before(connection, network.pk, origin, last))
        assert counts.by_execution == before
        listed = BlockAccessList.objects.get(block=block)
        BlockAccessList.objects.filter(block=block).delete()
        steps: list[None] = []
        expected = logged(
            replay_before(
                connection, network.pk, origin, last, lambda: steps.append(None)
            )
        )
    listed.save(force_insert=True)
    assert counts.by_execution == before + 1
    assert len(steps) == last
    assert found == expected
    assert b'"op":"SSTORE"' in found
