"""Upstreams that fail: scenarios 13 to 20, and failures of the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import connection as django_connection
from psycopg import sql
from sha3 import keccak_256

from evm import rlp
from networks.services import add_upstream
from nodeapi.chain.database import importer_connection
from nodeapi.follower import follower, importing, pool
from nodeapi.follower.watcher import FORK_STOP_SECONDS
from nodeapi.models import Block
from nodeapi.upstreams.block_rlp import header_of
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import SLUG, Net
from tests.support import chains, upstream_server
from tests.support.simulator import (
    ALICE,
    Simulator,
    genesis_of,
    grow,
    small_chain,
)
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_13_missed_and_duplicate_heads(start_node: StartNode) -> None:
    chain = grow(small_chain(), 2)
    node = start_node(chain)
    net = Net(node, scheme="ws")
    with net.followed():
        net.wait_for(chain.blocks[-1])
        net.wait(lambda: node.announce() == 1)
        for block_count in (5, 1, 3):
            grow(chain, block_count)
            node.show(chain)
            for _ in range(3):
                node.announce()
            net.wait_for(chain.blocks[-1])


def test_14_silent_socket(start_node: StartNode) -> None:
    """Heads without notifications are found by polling."""
    chain = grow(small_chain(), 2)
    node = start_node(chain)
    net = Net(node, scheme="ws")
    with net.followed():
        net.wait(lambda: node.announce() == 1)
        net.wait_for(chain.blocks[-1])
        for _ in range(2):
            grow(chain, 1)
            net.wait_for(node.show(chain, notifies=False))


def test_14_lost_socket(start_node: StartNode) -> None:
    chain = grow(small_chain(), 2)
    node = start_node(chain)
    net = Net(node, scheme="ws")
    with net.followed():
        net.wait(lambda: node.announce() == 1)
        node.server.drop()
        grow(chain, 1)
        net.wait_for(node.show(chain))
        net.wait(lambda: node.announce() == 1)


def test_15_backend_70_behind(start_node: StartNode) -> None:
    """The head stays if a load balancer returns an older block for a moment."""
    chain = grow(small_chain(), 80)
    balanced, other = start_node(chain), start_node(chain)
    net = Net(balanced, other)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        balanced.show(chain, 10)
        net.wait_for_looks(balanced, 6)
        assert net.head()[0] == 80
        grow(chain, 1)
        net.wait_for(other.show(chain))
        net.wait_for(balanced.show(grow(chain, 1)))
        assert net.reorganisations() == []


def test_16_block_unknown_by_hash_yet(start_node: StartNode) -> None:
    chain = grow(small_chain(), 3)
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        block = grow(chain, 1).blocks[-1]
        node.unknown.add(block.header.hash)
        node.show(chain)
        wanted = ["0x" + block.header.hash.hex()]
        net.wait(lambda: ("debug_getRawBlock", wanted) in node.server.calls)
        node.unknown.clear()
        net.wait_for(block)


FAULTS = {
    "429": upstream_server.status(429, b"slow down", Retry_After="0"),
    "503": upstream_server.status(503, b"Service Unavailable"),
    "HTML": upstream_server.body(b"<html>maintenance</html>"),
    "cut": upstream_server.cut,
    "hung up": upstream_server.hang_up,
    "too long": upstream_server.status(200, b"", Content_Length=str(2**40)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_17_responses_that_are_none(start_node: StartNode, name: str) -> None:
    """The upstream is backed off, another one is used, and it is used again later."""
    chain = grow(small_chain(), 3)
    faulty, other = start_node(chain), start_node(chain)
    net = Net(faulty, other)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        faulty.server.fault = FAULTS[name]
        net.wait(
            lambda: (status := net.upstream_status(0)) and status.backing_off_until
        )
        grow(chain, 1)
        faulty.show(chain)
        net.wait_for(other.show(chain))
        other.server.fault = FAULTS[name]
        net.wait_for_alarm("no upstream")
        faulty.server.fault = None
        net.wait_for(faulty.show(grow(chain, 1)))
        net.wait_for_alarm("")


def test_18_slow_upstream(start_node: StartNode) -> None:
    """A block that is not sent in time is fetched from another upstream."""
    chain = grow(small_chain(), 3)
    slow, other = start_node(chain), start_node(chain)
    net = Net(slow, other)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        grow(chain, 1)
        slow.server.fault = upstream_server.hold
        net.wait_for(other.show(chain))
        slow.server.release()


def test_18_a_follower_that_waits_for_a_slow_upstream_stops_at_once(
    start_node: StartNode, patient: None
) -> None:
    """The supervisor kills a follower that runs 10 s after SIGTERM."""
    chain = grow(small_chain(), 3)
    node = start_node(chain)
    net = Net(node)
    waits = threading.Event()

    def hold_parents(reply: upstream_server.Reply) -> None:
        method, params = node.server.calls[-1]
        if method.startswith("eth_getBlockBy") and params[0].startswith("0x"):
            upstream_server.hold(reply)
            waits.set()

    with net.followed():
        net.wait_for(chain.blocks[-1])
        node.server.fault = hold_parents
        node.show(grow(chain, 3))
        assert waits.wait(PATIENCE_SECONDS)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert net.head()[0] == 3


@pytest.mark.parametrize(
    ("chain_id", "extra", "reason"),
    [(5, b"", "chain id 0x5 instead of 0x539"), (1337, b"other", "genesis 0x")],
)
def test_19_wrong_chain_or_genesis(
    start_node: StartNode, chain_id: int, extra: bytes, reason: str
) -> None:
    chain = grow(small_chain(), 3)
    stranger = grow(small_chain(chain_id, extra_data=extra), 9)
    node, wrong = start_node(chain), start_node(stranger)
    net = Net(wrong, node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        net.wait_for_error(0, reason)
        assert wrong.server.count("debug_getRawBlock") == 0
        # An operator corrects the URL.
        wrong.chain_id = 1337
        wrong.show(grow(chain, 1))
        net.wait_for(chain.blocks[-1])


def test_20_pruned(start_node: StartNode) -> None:
    """A block that one upstream has deleted is fetched from another one."""
    chain = grow(small_chain(), 40)
    pruned, archive = start_node(chain), start_node(chain)
    pruned.pruned = 30
    net = Net(pruned)
    with net.followed():
        net.wait_for_error(0, "pruned")
        add_upstream(network=net.row(), url=archive.server.url("http"))
        net.wait_for(chain.blocks[-1])


def test_20_no_debug_namespace(start_node: StartNode) -> None:
    chain = grow(small_chain(), 40)
    node = start_node(chain)
    node.has_debug = False
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        assert node.server.count("debug_getRawBlock") <= 20, "it is remembered"


def test_all_upstreams_down_and_up_again(start_node: StartNode) -> None:
    chain = grow(small_chain(), 3)
    nodes = [start_node(chain) for _ in range(2)]
    net = Net(*nodes)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        for node in nodes:
            node.server.fault = upstream_server.hang_up
        net.wait_for_alarm("no upstream is usable")
        assert net.head()[0] == 3
        grow(chain, 5)
        for node in nodes:
            node.server.fault = None
            node.show(chain)
        net.wait_for(chain.blocks[-1])
        net.wait_for_alarm("")


def test_the_head_of_an_unavailable_upstream_counts_for_a_while(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "VIEW_SECONDS", 1.0)
    chain = grow(small_chain(), 5)
    lower = start_node(chain)
    lower.show(chain, 3)
    lost = start_node(chain)
    net = Net(lower, lost)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        lost.server.fault = upstream_server.hang_up
        net.wait_for(chain.blocks[2])
    assert net.reorganisations() == [(3, 2, 0)]


def test_upstreams_are_changed_while_following(start_node: StartNode) -> None:
    chain, other = grow(small_chain(), 3), grow(small_chain(), 5)
    nodes = [start_node(chain), start_node(other)]
    net = Net(nodes[0])
    with net.followed():
        net.wait_for(chain.blocks[-1])
        add_upstream(network=net.row(), url=nodes[1].server.url("http"))
        net.wait_for(other.blocks[-1])
        net.set_upstream(0, is_enabled=False)
        count = nodes[0].server.calls

        def is_left() -> bool:
            before = len(count)
            net.wait_for_looks(nodes[1], 3)
            return len(count) == before

        net.wait(is_left)


def test_the_lock_is_lost(start_node: StartNode) -> None:
    """The follower continues after each of its connections was cut."""
    chain = grow(small_chain(), 3)
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        for _ in range(3):
            net.wait_for(chain.blocks[-1])
            with importer_connection() as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid IN"
                    " (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
                )
            node.show(grow(chain, 1))
        net.wait_for(chain.blocks[-1])
    chains.import_blocks("straight", genesis_of(), chain.blocks)
    assert chains.rows(SLUG) == chains.rows("straight")


LATER = {"laterNumber": "0x7"}
AMSTERDAM = {"blockAccessListHash": f"0x{'11' * 32}", "slotNumber": "0x7"}


def add_later_fork(node: Simulator, first: int, members: dict[str, str]) -> None:
    """Make a node send headers with further members from a block on."""
    for name in ("eth_getBlockByNumber", "eth_getBlockByHash"):
        node.server.methods[name] = partial(
            _later_fork, node.server.methods[name], first, members
        )


def _later_fork(
    method: Callable[..., Any],
    first: int,
    members: dict[str, str],
    name: str,
    full: bool,
) -> Any:
    found = method(name, full)
    if found is None or int(found["number"], 16) < first:
        return found
    more = [bytes.fromhex(each[2:].rjust(2, "0")) for each in members.values()]
    items = [*header_of(found).items(), *more]
    block_hash = keccak_256(rlp.encode(items)).hexdigest()
    return found | members | {"hash": f"0x{block_hash}"}


@pytest.mark.parametrize(
    ("members", "needs"),
    [
        ({}, "future, which is not supported"),
        (LATER, "a fork with the members laterNumber, which is not supported"),
        (AMSTERDAM, "amsterdam, which the network's config does not schedule"),
    ],
)
def test_a_fork_that_this_version_or_the_config_lacks(
    start_node: StartNode, members: dict[str, str], needs: str
) -> None:
    """The blocks before it are imported, no upstream is blamed, and polls are rare."""
    chain = grow(small_chain(fork="prague"), 160)
    genesis = genesis_of(fork="prague")
    node = start_node(chain)
    if members:
        add_later_fork(node, 151, members)
    else:
        genesis["config"]["futureTime"] = chain.blocks[150].header.timestamp
    net = Net(node, scheme="ws", genesis=genesis)
    latest = ("eth_getBlockByNumber", ["latest", False])
    with net.followed():
        net.wait_for(chain.blocks[149])
        net.wait_for_alarm(f"block 151 needs {needs}")
        status = net.wait_for_error(0, f"block 151 needs {needs}")
        assert (status.head_number, status.errors) == (160, 0)
        assert net.quarantined() == []
        assert node.server.calls.count(latest) == 1
        before = len(node.server.calls)
        for _ in range(3):
            node.show(grow(chain, 1))
            at = net.status().updated_at
            net.wait(lambda at=at: net.status().updated_at > at)
        assert len(node.server.calls) == before
    assert FORK_STOP_SECONDS > 2 * 60, "two requests are less than one a minute"


def test_a_fork_that_only_one_upstream_has_reached(start_node: StartNode) -> None:
    chain = grow(small_chain(), 8)
    ahead, behind = start_node(chain), start_node(chain)
    behind.show(chain, 4)
    add_later_fork(ahead, 7, LATER)
    net = Net(ahead, behind)
    with net.followed():
        net.wait_for(chain.blocks[5])
        net.wait_for_error(0, "block 7 needs a fork with the members laterNumber")
        assert net.status().alarm == ""
        net.wait_for(behind.show(grow(chain.fork(), 1, "other")))
        assert net.status().alarm == ""


def test_a_transaction_type_that_this_version_lacks(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, no upstream is blamed, and another upstream may have the raw block."""
    monkeypatch.setattr(importing, "REFUSED_SECONDS", 0.5)
    chain = grow(small_chain(), 2)
    node = start_node(chain)
    node.has_debug = False
    by_hash = node.server.methods["eth_getBlockByHash"]

    def with_unknown_types(name: str, full: bool) -> Any:
        block = by_hash(name, full)
        if full:
            for transaction in block["transactions"]:
                transaction["type"] = "0x7e"
        return block

    node.server.methods["eth_getBlockByHash"] = with_unknown_types
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        chain.send(ALICE, ALICE.address, value=1)
        chain.block()
        node.show(grow(chain, 1))
        net.wait_for_alarm("126")
        assert net.head()[0] == 2
        assert net.quarantined() == []
        other = start_node(chain)
        add_upstream(network=net.row(), url=other.server.url("http"))
        net.wait_for(chain.blocks[-1])
        net.wait_for_alarm("")


def test_fork_schedules_are_compared(
    start_node: StartNode, caplog: pytest.LogCaptureFixture
) -> None:
    """Differences are logged, and the upstream is followed nevertheless."""
    chain = grow(small_chain(), 2)
    nodes = [start_node(chain) for _ in range(3)]
    fork = {"activationTime": 2_000_000_000, "blobSchedule": None, "chainId": "0x539"}
    fork |= {"precompiles": {}, "systemContracts": {}}
    nodes[0].server.methods["eth_config"] = {"current": fork}
    nodes[1].server.methods["eth_config"] = {"current": "soon"}
    net = Net(*nodes)
    net.set(agree=3)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        status = net.wait(
            lambda: (found := net.upstream_status(0)) and found.fork_warnings and found
        )
    first, second = status.fork_warnings.splitlines()
    assert first.startswith("The upstream has a fork at 2033-05-18 03:33:20 UTC")
    assert second.startswith("Blocks from 2033-05-18 03:33:20 UTC on can't be imported")
    assert status.unsupported_fork_time == 2_000_000_000
    for index in (1, 2):
        assert net.upstream_status(index).fork_warnings == ""
    for text in (first, second):
        assert f"upstream {net.upstreams[0].pk}: {text}" in caplog.messages


@contextmanager
def database_unavailable() -> Iterator[None]:
    """Cut all connections but the test's, and refuse new ones during the block."""
    parameters = django_connection.get_connection_params()
    for name in ("cursor_factory", "context"):
        parameters.pop(name, None)
    with django_connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = cursor.fetchone()[0]
    database = sql.Identifier(parameters["dbname"])
    allow = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
    with psycopg.connect(
        **{**parameters, "dbname": "postgres"}, autocommit=True
    ) as server:
        server.execute(allow.format(database, sql.SQL("false")))
        try:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND pid <> %s",
                (parameters["dbname"], own),
            )
            yield
        finally:
            server.execute(allow.format(database, sql.SQL("true")))


def test_the_database_is_unavailable_for_a_while(
    start_node: StartNode, caplog: pytest.LogCaptureFixture
) -> None:
    chain = grow(small_chain(), 200)
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        net.wait(lambda: net.head()[0] >= 1)  # while it catches up
        for _ in range(2):
            caplog.clear()
            with database_unavailable():
                wait_until(lambda: caplog.text.count("the database failed") >= 3)
                node.show(grow(chain, 2))
            net.wait_for(chain.blocks[-1])
    chains.import_blocks("straight", genesis_of(), chain.blocks)
    assert chains.rows(SLUG) == chains.rows("straight")
    assert net.reorganisations() == []


def side_blocks(net: Net) -> int:
    return Block.objects.filter(network_id=net.id, is_canonical=False).count()


def test_old_side_blocks_are_deleted(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "HOUSEKEEPING_SECONDS", 0.0)
    chain = grow(small_chain(), 3)
    other = grow(chain.fork(), 2, "other")
    node = start_node(grow(chain, 1))
    net = Net(node)
    net.set(keep_side_blocks=2)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        net.wait_for(node.show(other))
        net.wait_for(node.show(grow(other, 6)))
        net.wait_for_looks(node, 3)
        assert side_blocks(net) == 1, "its logs may still be reported as removed"
        chains.let_minutes_pass()
        net.wait(lambda: side_blocks(net) == 0)


def test_a_branch_is_not_deleted_while_it_is_imported(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upstream of the branch does not send one of its blocks for a while."""
    monkeypatch.setattr(follower, "HOUSEKEEPING_SECONDS", 0.0)
    chain = grow(small_chain(), 40)
    other = grow(small_chain(), 41, "other")
    node = start_node(chain)
    net = Net(node)
    net.set(keep_side_blocks=1)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        node.unknown.add(other.blocks[30].header.hash)
        node.show(other)
        net.wait(lambda: side_blocks(net) == 30)
        net.wait_for_looks(node, 6)
        assert side_blocks(net) == 30
        node.unknown.clear()
        net.wait_for(other.blocks[-1])
