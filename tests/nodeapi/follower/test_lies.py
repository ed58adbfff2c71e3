"""Upstreams that send false data: scenarios 21 to 25."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_bytes
from typing import Any

import pytest
from eth_typing import Address, Hash32

from evm.blocks import Block, Withdrawal
from nodeapi.follower import follower
from nodeapi.models import QuarantinedBlock
from nodeapi.status.facts import release_block
from samples.builder import ChainBuilder
from samples.signers import Signer
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import Net
from tests.support.simulator import (
    ALICE,
    Simulator,
    forged,
    grow,
    small_chain,
    with_body,
)
from tests.support.upstream_server import Reply, hold

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("patient"),
]

BOB = Address(b"\xb0" * 20)


def pay(chain: ChainBuilder, value: int) -> Block:
    """Add a block with a transaction and a withdrawal."""
    chain.send(ALICE, BOB, value=value)
    return chain.block(withdrawals=[Withdrawal(0, 0, BOB, value)])


@pytest.mark.parametrize("part", ["header", "transactions", "withdrawals"])
@pytest.mark.parametrize("has_debug", [True, False])
def test_21_altered_data_under_the_right_hash(
    start_node: StartNode, part: str, has_debug: bool
) -> None:
    """A block that does not have the requested hash is not used."""
    chain = grow(small_chain(), 1)
    liar, honest = start_node(chain), start_node(chain)
    net = Net(liar, honest)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        other = pay(chain.fork(), 2)
        block = pay(chain, 1)
        liar.has_debug = has_debug
        altered = replace(block, **{part: getattr(other, part)})
        liar.altered[block.header.hash] = altered
        liar.show(chain)
        net.wait_for_error(0, "hash is" if part == "header" else "the root")
        assert net.head()[0] == 1
        net.wait_for(honest.show(chain))
        assert net.quarantined() == []


def invalid_twin(block: Block, kind: str) -> Block:
    """Return an invalid block with a correct hash and correct roots of its body."""
    if kind == "state root":
        return forged(block, state_root=Hash32(bytes(32)))
    if kind == "withdrawal":
        paid = [Withdrawal(0, 0, BOB, 10**9)]
        return with_body(block, replace(block, withdrawals=paid))
    mallory = Signer("mallory").sign(
        {"to": BOB, "value": 1, "nonce": 0, "gas": 21_000, "gas_price": 10**10}
    )
    return with_body(block, replace(block, transactions=(mallory,)))


@pytest.mark.parametrize("kind", ["state root", "withdrawal", "signature"])
def test_21_invalid_block(start_node: StartNode, kind: str) -> None:
    """Its hash and the upstream are quarantined. The other upstream is followed."""
    chain = grow(small_chain(), 1)
    liar, honest = start_node(chain), start_node(chain)
    net = Net(liar, honest)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        bad = invalid_twin(pay(chain, 1), kind)
        liar.show_blocks(bad)
        net.wait(net.quarantined)
        [(found, upstream, reason)] = net.quarantined()
        assert (found, upstream) == (bad.header.hash, net.upstreams[0].pk)
        assert reason
        net.wait_for_error(0, reason)
        net.wait_for(honest.show(chain))
        net.wait_for(honest.show(grow(chain, 2)))
        assert len(net.quarantined()) == 1
        # The quarantine ends when the block has left the upstream's chain.
        liar.show(grow(chain, 1))
        net.wait_for(chain.blocks[-1])


def test_21_descendants_of_an_invalid_block_are_not_followed(
    start_node: StartNode,
) -> None:
    chain = grow(small_chain(), 1)
    liars = [start_node(chain) for _ in range(2)]
    honest = start_node(chain)
    net = Net(*liars, honest)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        good = pay(chain, 1)
        bad = forged(good, state_root=Hash32(bytes(32)))
        child = forged(grow(chain, 1).blocks[-1], parent_hash=bad.header.hash)
        liars[0].show_blocks(bad)
        net.wait(net.quarantined)
        liars[1].show_blocks(bad, child)
        net.wait_for_error(1, "is invalid")
        assert liars[1].server.count("debug_getRawBlock") <= 1, "block 1"
        net.wait_for(honest.show(chain))
        assert len(net.quarantined()) == 1


def test_21_released_block_is_imported_again(start_node: StartNode) -> None:
    """It is quarantined again, because it is still invalid."""
    chain = grow(small_chain(), 1)
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        bad = invalid_twin(pay(chain, 1), "state root")
        node.show_blocks(bad)
        net.wait_for_alarm("no upstream is usable")
        before = QuarantinedBlock.objects.get(network_id=net.id)
        assert release_block(network=net.row(), block_id=before.pk)
        net.wait(net.quarantined)
        after = QuarantinedBlock.objects.get(network_id=net.id)
        assert after.pk != before.pk
        assert bytes(after.hash) == bad.header.hash


def test_21_invalid_block_in_the_middle_of_catching_up(start_node: StartNode) -> None:
    """The blocks before the invalid one are kept."""
    chain = grow(small_chain(), 60)
    bad = forged(chain.blocks[44], state_root=Hash32(bytes(32)))
    node = start_node(chain)
    node.show_blocks(bad, forged(chain.blocks[45], parent_hash=bad.header.hash))
    net = Net(node)
    with net.followed():
        net.wait_for_alarm("no upstream is usable")
        assert net.head() == (44, chain.blocks[43].header.hash)
        node.show(chain)
        net.wait_for(chain.blocks[-1])
        net.wait_for_alarm("")


def test_22_fabricated_fork_against_k_of_n(start_node: StartNode) -> None:
    chain = grow(small_chain(), 5)
    fabricated = grow(chain.fork(), 20, "fabricated")
    liar, *honest = nodes = [start_node(chain) for _ in range(3)]
    net = Net(*nodes)
    net.set(agree=2)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        liar.show(fabricated)
        net.wait_for_looks(liar, 3)
        grow(chain, 2)
        honest[0].show(chain)
        net.wait_for_looks(honest[0], 3)
        assert net.head()[0] == 5, "one is not enough"
        net.wait_for(honest[1].show(chain))
        # An upstream that lags by one block supports the block before.
        grow(chain, 2)
        honest[0].show(chain)
        honest[1].show(chain, 8)
        net.wait_for(chain.blocks[7])
        status = net.wait(
            lambda: (found := net.status()) and found.best_number == 9 and found
        )
        assert status.alarm == "", "the liar can't pretend that we are behind"
        assert liar.server.count("debug_getRawBlock") <= 5
        # Fewer upstreams than `agree` remain.
        for node in honest:
            node.show(grow(chain.fork(), 3), notifies=False)
            node.server.fault = lambda reply: setattr(reply, "length", -1)
        net.wait_for_alarm("2 upstreams have to agree, but only 1 is usable")
        assert net.head()[0] == 8
    assert net.reorganisations() == []


def test_22_catching_up_needs_agreement(start_node: StartNode) -> None:
    chain = grow(small_chain(), 200)
    liar, *honest = [start_node(chain) for _ in range(3)]
    liar.show(grow(grow(small_chain(), 20).fork(), 230, "fabricated"))
    net = Net(liar, *honest)
    net.set(agree=2)
    with net.followed():
        net.wait_for(chain.blocks[-1])
    assert net.reorganisations() == []
    assert liar.server.count("debug_getRawBlock") == 0


def test_23_finalized_moves_back(start_node: StartNode) -> None:
    chain = grow(small_chain(), 10)
    node = start_node(chain)
    node.safe, node.finalized = 8, 7
    net = Net(node)
    with net.followed():
        net.wait_for_tags(chain.blocks[7], chain.blocks[6])
        node.safe, node.finalized = 5, 4
        net.wait_for(node.show(grow(chain, 1)))
        assert net.tags()[1] == chain.blocks[6].header.hash
        node.safe, node.finalized = 9, 9
        net.wait_for_tags(chain.blocks[8], chain.blocks[8])


def test_23_finalized_off_the_chain(start_node: StartNode) -> None:
    chain = grow(small_chain(), 6)
    other = grow(chain.fork(), 2, "other")
    node = start_node(grow(chain, 4))
    node.safe, node.finalized = 6, 5
    net = Net(node)
    with net.followed():
        net.wait_for_tags(chain.blocks[5], chain.blocks[4])
        node.safe, node.finalized = 8, other.blocks[-1]
        net.wait_for(node.show(grow(chain, 1)))
        net.wait_for_error(0, "is not on the chain of the head")
        assert net.tags()[1] == chain.blocks[4].header.hash
        node.safe = node.finalized = 8
        net.wait_for_tags(chain.blocks[7], chain.blocks[7])


def test_23_finalized_against_k_of_n(start_node: StartNode) -> None:
    chain = grow(small_chain(), 10)
    nodes = [start_node(chain) for _ in range(3)]
    for node, finalized in zip(nodes, (10, 6, 4), strict=True):
        node.safe = node.finalized = finalized
    net = Net(*nodes)
    net.set(agree=2)
    with net.followed():
        net.wait_for_tags(chain.blocks[5], chain.blocks[5])
        nodes[2].finalized = 7
        net.wait_for_tags(chain.blocks[6], chain.blocks[6])


class Boaster:
    """Makes a node claim a head above its own, without all of its ancestors.

    height: number of blocks above its own head. changes: whether each poll gets another head. shown: number of ancestors that are
    sent. is_slow: whether requests for blocks by hash are never answered.
    """

    def __init__(
        self,
        node: Simulator,
        *,
        height: int = 40,
        changes: bool = False,
        shown: int = 0,
        is_slow: bool = False,
    ) -> None:
        self.node = node
        self.height = height
        self.changes = changes
        self.shown = shown
        self.claimed: dict[int, Block] = {}
        self.by_number = node.server.methods["eth_getBlockByNumber"]
        self.by_hash = node.server.methods["eth_getBlockByHash"]
        node.server.methods["eth_getBlockByNumber"] = self.answer
        if is_slow:
            node.server.fault = self.hold

    def answer(self, name: str, full: bool) -> Any:
        """Return a block by its number or tag."""
        if name == "latest" and (self.changes or not self.claimed):
            self.claim()
        if name in ("safe", "finalized"):
            return self.by_number(name, full)
        number = max(self.claimed) if name == "latest" else int(name, 16)
        if number in self.claimed:
            return self.by_hash("0x" + self.claimed[number].header.hash.hex(), full)
        return self.by_number(name, full)

    def claim(self) -> None:
        """Make another head, with some ancestors."""
        head = self.node.line[-1].header.number + self.height
        parent = Hash32(token_bytes(32))
        for number in range(head - self.shown, head + 1):
            block = forged(self.node.line[-1], number=number, parent_hash=parent)
            self.claimed[number] = block
            parent = block.header.hash
            self.node.known[parent] = block

    def hold(self, reply: Reply) -> None:
        """Do not answer requests for blocks by hash."""
        method, _ = self.node.server.calls[-1]
        if method in ("eth_getBlockByHash", "debug_getRawBlock"):
            hold(reply)


@pytest.mark.parametrize(
    "options",
    [{}, {"height": 1000}, {"changes": True}, {"shown": 30}, {"is_slow": True}],
    ids=lambda options: ", ".join(options) or "one head",
)
@pytest.mark.parametrize("liars", [1, 2])
def test_25_higher_head_without_ancestors(
    start_node: StartNode,
    liars: int,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The upstream is ignored for a while, and the correct one is followed."""
    monkeypatch.setattr(follower, "SEARCH_SECONDS", 0.5)
    chain = grow(small_chain(), 3)
    nodes = [start_node(chain) for _ in range(liars)]
    honest = start_node(chain)
    net = Net(*nodes, honest)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        for node in nodes:
            Boaster(node, **options)
        net.wait_for(honest.show(grow(chain, 1)))
        net.wait_for(honest.show(grow(chain, 1)))
        for index in range(liars):
            net.wait(
                lambda index=index: (
                    (status := net.upstream_status(index)) and status.errors
                )
            )
        assert net.quarantined() == []
        assert net.status().alarm == ""


@pytest.mark.parametrize(
    ("field", "bits"), [("number", 63), ("gas_limit", 63), ("timestamp", 64)]
)
def test_24_header_with_a_number_that_no_column_holds(
    start_node: StartNode, field: str, bits: int
) -> None:
    """It is never stored, and the follower is not restarted."""
    chain = grow(small_chain(), 1)
    liar, honest = start_node(chain), start_node(chain)
    net = Net(liar, honest)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        status = net.status()
        lie = forged(grow(chain.fork(), 1).blocks[-1], **{field: 2**bits})
        liar.line = [*liar.line, lie]
        liar.announce()
        net.wait_for_error(0, f"{2**bits} exceeds {bits} bits")
        net.wait_for(honest.show(grow(chain, 2)))
        assert status is not None
        after = net.status()
        assert after is not None
        assert after.process_started_at == status.process_started_at
