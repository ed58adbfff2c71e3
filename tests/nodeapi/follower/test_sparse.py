"""Following from a checkpoint: what blocks read is fetched, and proved."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from eth_typing import Address

from evm.blocks import encode_block
from networks.models import Network
from networks.services import Checkpoint
from nodeapi.chain.database import importer_connection
from nodeapi.chain.state_reader import StoredState, account_value
from nodeapi.follower import follower as following
from nodeapi.models import BlockAccessList, TransactionRecord, TrieNode
from nodeapi.proofs import keys
from nodeapi.proofs.values import head_anchor
from samples.builder import ChainBuilder
from samples.node import Refused
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import SLUG, Net, start_follower
from tests.support import chains, copies
from tests.support.full_node import FullNode
from tests.support.simulator import Simulator
from tests.support.sparse import Load, sparse_importer

pytestmark = pytest.mark.django_db(transaction=True)

LOAD = Load()
CHECKPOINT, HEAD = 260, 284
TRACED = 236
"""The first block that is traced later. The first ones have no transactions."""
BRANCH = 272
"""The block at which another branch begins."""


@cache
def chain() -> ChainBuilder:
    """Return a chain up to `HEAD`."""
    return LOAD.grow(trunk().fork(), HEAD - BRANCH, seed=2)


@cache
def branch() -> ChainBuilder:
    """Return a chain that is longer by a block, and branches off after `BRANCH`."""
    return LOAD.grow(trunk().fork(), HEAD - BRANCH + 1, seed=3)


@cache
def trunk() -> ChainBuilder:
    """Return what both chains begin with."""
    made = LOAD.grow(LOAD.chain(), 240, seed=0, transactions=0)
    return LOAD.grow(made, BRANCH - 240, seed=1)


def import_full() -> None:
    """Import both chains into a complete network, whose head is the branch's."""
    chains.import_blocks(
        "full", LOAD.genesis, [*chain().blocks, *branch().blocks[BRANCH:]]
    )


@contextmanager
def state_methods(node: Simulator) -> Iterator[FullNode]:
    """Let a simulator serve the state of the complete network."""
    with importer_connection() as connection:
        full = FullNode(connection, "full")
        node.server.methods |= full.methods
        yield full


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise alarms at once."""
    monkeypatch.setattr(following, "PATIENCE_SECONDS", 0.5)


def sparse_net(*nodes: Simulator) -> Net:
    """Create a network that starts at the checkpoint."""
    block = chain().blocks[CHECKPOINT - 1]
    return Net(
        *nodes,
        genesis=LOAD.genesis,
        checkpoint=Checkpoint(CHECKPOINT, block.header.hash, 256),
    )


def test_a_sparse_network_has_the_rows_of_a_complete_one(
    start_node: StartNode,
) -> None:
    copies.once("both branches", import_full)
    node = start_node(chain())
    with state_methods(node) as full:
        net = sparse_net(node)
        with net.followed():
            net.wait_for(chain().blocks[-1])
            full.has_side_blocks = False  # the state of our head is no longer known
            net.wait_for(node.show(branch()))
    assert net.reorganisations() == [(BRANCH, HEAD - BRANCH, HEAD - BRANCH + 1)]
    assert chains.state_rows(SLUG, CHECKPOINT) == chains.state_rows("full", CHECKPOINT)
    assert_proved_values_are_right()


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same", "restarted"])
def test_a_reorganisation_goes_on_after_failures_of_the_upstream(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch, is_restarted: bool
) -> None:
    copies.once("both branches", import_full)
    # As in a large trie, where no key is found by trial below a long path.
    monkeypatch.setattr(keys, "PROBED_NIBBLES", 0)
    node = start_node(chain())

    def fail_later(method: str, result: Any) -> Any:
        if full.calls["eth_getProof"] > asked + 12:
            raise Refused(-32000, "missing trie node")
        return result

    with state_methods(node) as full, ExitStack() as stack:
        net = sparse_net(node)
        follower = stack.enter_context(ExitStack())
        follower.enter_context(net.followed())
        net.wait_for(chain().blocks[-1])
        full.has_side_blocks = False
        asked = full.calls["eth_getProof"]
        full.change = fail_later
        head = node.show(branch())
        net.wait_for_alarm("missing trie node")
        if is_restarted:
            follower.close()
            full.change = lambda _method, result: result
            store_branch(net, full)
            full.change = refuse_all
            follower.enter_context(net.followed())
            net.wait_for_alarm("the state is gone")
            full.has_side_blocks = True  # of our head, whose nodes were deleted
        full.change = lambda _method, result: result
        net.wait_for(head)
        follower.close()
    assert chains.state_rows(SLUG, CHECKPOINT) == chains.state_rows("full", CHECKPOINT)
    assert_proved_values_are_right()


def store_branch(net: Net, full: FullNode) -> None:
    """Store all blocks of the branch, of which only the move of the head is left.

    It needs nodes of the tries that are then not known any more.
    """
    with sparse_importer(SLUG, full.methods) as importer:
        for block in branch().blocks[BRANCH:]:
            importer.add(encode_block(block))
        assert importer.is_known(branch().blocks[-1].header.hash)
    TrieNode.objects.filter(network_id=net.id).exclude(path=b"").delete()


def refuse_all(_method: str, _result: Any) -> Any:
    raise Refused(-32000, "the state is gone")


def test_another_upstream_shows_what_the_first_one_omits(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies.once("both branches", import_full)
    monkeypatch.setattr(keys, "PROBED_NIBBLES", 0)
    nodes = [start_node(chain()) for _ in range(2)]
    omitting: dict[str, Simulator] = {}
    with ExitStack() as stack:
        for node in nodes:
            full = stack.enter_context(state_methods(node))
            del node.server.methods["debug_executionWitness"]

            def prove(
                address: str,
                slots: list[str],
                block: Any,
                node: Simulator = node,
                full: FullNode = full,
            ) -> Any:
                """Send no proof of a block that is not the head, if asked first."""
                name = block["blockHash"]
                with importer_connection() as opened:
                    head = head_anchor(opened, net.id).hash
                is_head = name == f"0x{head.hex()}"
                if not is_head and omitting.setdefault(name, node) is node:
                    return {"accountProof": [], "storageProof": []}
                return full.methods["eth_getProof"](address, slots, block)

            node.server.methods["eth_getProof"] = prove
        net = sparse_net(*nodes)
        with net.followed():
            net.wait_for(chain().blocks[-1])
    assert omitting
    assert_proved_values_are_right()


def test_a_killed_or_disconnected_follower_goes_on(start_node: StartNode) -> None:
    copies.once("both branches", import_full)
    node = start_node(chain())
    with state_methods(node) as full, importer_connection() as other:

        def disconnect(_method: str, result: Any) -> Any:
            """End the connections to the database that hold the follower's locks."""
            full.change = lambda _method, result: result
            ended = other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE database = ("
                "SELECT oid FROM pg_database WHERE datname = current_database())"
                " AND locktype = 'advisory'"
            ).fetchall()
            assert ended
            return result

        net = sparse_net(node)
        for proofs in (1, 8, 20):
            process = start_follower(net)
            asked = full.calls["eth_getProof"] + proofs
            net.wait(lambda asked=asked: full.calls["eth_getProof"] >= asked)
            process.kill()
            process.wait()
        full.change = disconnect
        with net.followed():
            net.wait_for(chain().blocks[-1])
        assert full.change is not disconnect
    assert_proved_values_are_right()


def test_lies_about_the_state_reach_no_row(start_node: StartNode) -> None:
    copies.once("both branches", import_full)
    liar = start_node(chain())
    with state_methods(liar) as full:
        full.change = lie
        net = sparse_net(liar)
        with net.followed():
            net.wait_for_alarm("not proved")
            honest = start_node(chain())
            with state_methods(honest):
                net.add(honest)
                net.wait_for(chain().blocks[-1])
    assert_proved_values_are_right()


def test_a_lag_behind_the_proofs_of_the_upstream_is_an_alarm(
    start_node: StartNode,
) -> None:
    copies.once("both branches", import_full)
    node = start_node(chain())
    with state_methods(node) as full:
        full.oldest = HEAD - 8
        net = sparse_net(node)
        with net.followed():
            net.wait_for_alarm("missing trie node")
            full.oldest = 0
            net.wait_for(chain().blocks[-1])


_chance = random.Random(1)


def lie(method: str, result: Any) -> Any:
    """Change an answer: a node, a code, or the names of accounts and slots."""
    text = json.dumps(result)
    if method == "debug_traceBlockByHash":
        return json.loads(text.replace("a", "b"))
    digits = [place for place, each in enumerate(text) if each in "0123456789abcdef"]
    for place in _chance.sample(digits, min(3, len(digits))):
        text = f"{text[:place]}{_chance.choice('123')}{text[place + 1 :]}"
    return json.loads(text)


def assert_proved_values_are_right() -> None:
    """Compare each row of the checkpoint's block with the complete network's state."""
    full = Network.objects.get(slug="full")
    with importer_connection() as connection:
        state = StoredState(connection, full.pk, CHECKPOINT)
        accounts = connection.execute(
            "SELECT address, nonce, balance, code_hash, storage_root"
            " FROM nodeapi_accountversion JOIN networks_network AS n"
            " ON n.id = network_id WHERE slug = %s AND block_number = %s",
            (SLUG, CHECKPOINT),
        ).fetchall()
        slots = connection.execute(
            "SELECT address, slot, value FROM nodeapi_storageversion"
            " JOIN networks_network AS n ON n.id = network_id"
            " WHERE slug = %s AND block_number = %s",
            (SLUG, CHECKPOINT),
        ).fetchall()
        for address, *columns in accounts:
            assert account_value(columns) == state.account(Address(address))
        for address, slot, value in slots:
            found = state.storage(Address(address), int.from_bytes(slot))
            assert int.from_bytes(value) == found
    assert accounts
    assert slots


@pytest.mark.parametrize("lacks", [(), ("debug_executionWitness",)])
def test_proved_blocks_are_traced_later(
    start_node: StartNode, lacks: tuple[str, ...], settings: Any
) -> None:
    copies.once("both branches", import_full)
    node = start_node(chain())
    with state_methods(node) as full:
        net = sparse_net(node)
        with net.followed():
            net.wait_for(chain().blocks[-1])
        for method in lacks:
            del node.server.methods[method]
        if not lacks:  # another upstream is asked first
            liar = start_node(chain())
            nothing = {"state": [], "codes": [], "headers": []}
            liar.server.methods["debug_executionWitness"] = lambda _: nothing
            net.add(liar)
            net.set_upstream(0, position=9)
        first, last = str(TRACED), str(CHECKPOINT)
        arguments = ("backfill", "--network", SLUG, "--from", first, "--to", last)
        full.change = lie
        with pytest.raises(CommandError, match="blocks down to block"):
            call_command(*arguments, "--traces", "--rate", "1000", stderr=io.StringIO())
        assert traces(SLUG) == []
        full.change = lambda _method, result: result
        call_command(*arguments, "--traces", "--rate", "1000", stdout=io.StringIO())
        full.calls.clear()
        call_command(*arguments, "--traces", stdout=io.StringIO())
        assert traces(SLUG) == traces("full") != []
        assert not full.calls.total(), "all blocks have traces already"
        settings.NODEAPI_RECORD_LIMIT_BYTES = 1
        of_block = {"block__network_id": net.id, "block__number": CHECKPOINT}
        BlockAccessList.objects.filter(**of_block).delete()
        call_command(*arguments, "--traces", stdout=io.StringIO())
    assert traces(SLUG) != traces("full"), "the limit is that of the follower's records"


def traces(slug: str) -> list[Any]:
    """Return the records and access lists of the blocks `TRACED` to `CHECKPOINT`."""
    rows = TransactionRecord.objects.filter(
        block__network__slug=slug,
        block__number__range=(TRACED, CHECKPOINT),
        block__access_list__isnull=False,
    )
    columns = ("calls", "calls_size", "prestate", "prestate_size", "details", "receipt")
    lists = "block__access_list__list", "block__access_list__gas"
    ordered = rows.order_by("block__number", "index").values_list(*columns, *lists)
    return [
        [bytes(v) if isinstance(v, memoryview) else v for v in row] for row in ordered
    ]
