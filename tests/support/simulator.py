"""A node with a chain from `ChainBuilder`, as an upstream over HTTP and WebSocket.

`Simulator.show` makes a chain canonical. The attributes of the simulator and the faults of
its `UpstreamServer` make it misbehave.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from evm.blocks import Block
from evm.headers import Header
from evm.trie import ordered_root
from samples.builder import ChainBuilder
from samples.node import ChainNode
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.support.upstream_server import UpstreamServer, running_upstream

ALICE = Signer("alice")
"""An account with funds in `genesis_of`."""


def genesis_of(
    chain_id: int = 1337, fork: str = "shanghai", extra_data: bytes = b""
) -> dict[str, Any]:
    """Return the genesis.json of `small_chain`."""
    return make_genesis(
        chain_id=chain_id,
        first_blocks=from_genesis(fork),
        alloc={f"0x{ALICE.address.hex()}": {"balance": hex(10**24)}},
        extra_data=extra_data,
    )


def small_chain(*args: Any, **options: Any) -> ChainBuilder:
    """Return a chain without blocks whose blocks are quickly executed.

    The blocks are one second apart, so that a follower polls every 0.2 s.
    """
    return ChainBuilder(genesis_of(*args, **options), seconds_per_block=1)


def grow(chain: ChainBuilder, count: int, text: str = "") -> ChainBuilder:
    """Add empty blocks, which differ from those of other branches by a text."""
    for _ in range(count):
        chain.block(extra_data=text.encode())
    return chain


class Simulator(ChainNode):
    """A node whose server can be made to fail. Its attributes are those of `ChainNode`."""

    def __init__(self, server: UpstreamServer, chain: ChainBuilder) -> None:
        super().__init__(chain.config.chain_id, chain.genesis)
        self.server = server
        server.methods |= self.methods
        self.show(chain)

    def show_blocks(self, *blocks: Block) -> Block:
        """Make blocks canonical as `ChainNode` does, and notify the subscribers."""
        head = super().show_blocks(*blocks)
        self.announce()
        return head

    def show(
        self, chain: ChainBuilder, number: int | None = None, *, notifies: bool = True
    ) -> Block:
        """Make a chain canonical, up to a block. Return this block.

        notifies: whether subscribers are notified of it.
        """
        blocks = [chain.genesis, *chain.blocks]
        self.known |= {block.header.hash: block for block in blocks}
        self.receipts |= {
            block.header.hash: outcome.receipts
            # A chain whose blocks were not built has no outcomes.
            for block, outcome in zip(chain.blocks, chain.outcomes, strict=False)
        }
        self.line = blocks if number is None else blocks[: number + 1]
        if notifies:
            self.announce()
        return self.head

    def announce(self) -> int:
        """Notify the subscribers of the head, and return their number."""
        if not self.server.sockets:
            return 0
        return self.server.notify("newHeads", self.head_document())


@contextmanager
def simulator(chain: ChainBuilder) -> Iterator[Simulator]:
    """Run a node that has a chain."""
    with running_upstream() as server:
        yield Simulator(server, chain)


def forged(block: Block, **changes: Any) -> Block:
    """Return a block whose header has other fields, and therefore another hash."""
    header: Header = replace(block.header, **changes)
    return replace(block, header=header)


def with_body(block: Block, body: Block) -> Block:
    """Return a block with the transactions and withdrawals of another one.

    Its header has their roots, but the results of executing its former body.
    """
    assert body.withdrawals is not None
    return replace(
        forged(
            block,
            transactions_root=ordered_root([t.raw for t in body.transactions]),
            withdrawals_root=ordered_root([w.encode() for w in body.withdrawals]),
        ),
        transactions=body.transactions,
        withdrawals=body.withdrawals,
    )
