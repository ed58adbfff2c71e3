"""Checks of an upstream that proves the states of a chain that we know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from eth_typing import Address, Hash32

from evm.blocks import Block
from evm.chain_config import ChainConfig
from evm.changes import AccountValue
from evm.execution import Outcome, execute_block
from evm.headers import ZERO_HASH, Header
from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState, UnknownValues
from evm.world import World
from nodeapi.chain.block_audit import execute
from nodeapi.chain.position import ANCESTORS_KEPT
from nodeapi.chain.replay import Origin
from nodeapi.chain.verification import computed_fields
from nodeapi.proofs.fetch import fetch
from nodeapi.proofs.past_state import PastState
from nodeapi.proofs.values import Anchor
from nodeapi.upstreams import hints, state
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.receipts import block_receipts
from samples.builder import ChainBuilder


class WatchedState(PastState):
    """A state that records what is read of it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.read = Keys()

    def account(self, address: Address) -> AccountValue | None:
        self.read.accounts.add(address)
        return super().account(address)

    def storage(self, address: Address, slot: int) -> int:
        self.read.slots.add((address, slot))
        return super().storage(address, slot)


class ProvingChecks:
    """Executes blocks of a chain with what an upstream sends of their parents' states.

    blocks: from block 1 on. counts: of what was checked.
    """

    def __init__(
        self, client: UpstreamClient, genesis: dict[str, Any], blocks: Sequence[Block]
    ) -> None:
        self._client = client
        self._config = ChainConfig.from_genesis(genesis)
        self._line = [ChainBuilder(genesis).genesis, *blocks]
        self.counts: Counter[str] = Counter()

    async def check(self, number: int, *, has_list: bool) -> None:
        """Check everything that the upstream is asked about a block and its parent.

        has_list: whether the upstream has the block's access list. If not, a trace names
            what to fetch.
        """
        block, parent = self._line[number], self._line[number - 1].header
        header = block.header
        limit = hints.most_keys(header.gas_used)
        outcome, read = await self._check_witness(block, parent)
        if has_list:
            listed = await hints.listed_keys(
                self._client, header.hash, header.block_access_list_hash, limit
            )
            assert listed.accounts >= read.accounts
            assert listed.slots >= read.slots
            assert await self._fetches(block, parent, listed) == 1
            self.counts["lists"] += 1
        else:
            traced = await hints.prestate_keys(self._client, header.hash, limit)
            fetches = await self._fetches(block, parent, traced)
            self.counts["fetches after traces"] += fetches - 1
        await self._check_calls(block, parent)
        receipts = await block_receipts(
            self._client,
            header.hash,
            header.receipts_root,
            [transaction.hash for transaction in block.transactions],
        )
        assert receipts == outcome.receipts
        self.counts["receipts"] += len(receipts)

    async def _check_calls(self, block: Block, parent: Header) -> None:
        """Check the keys of a block's transactions as calls after the parent."""
        for each in block.transactions[:2]:
            if each.to:
                call = {
                    "from": f"0x{each.sender.hex()}",
                    "to": f"0x{each.to.hex()}",
                    "input": f"0x{each.data.hex()}",
                }
                keys = await hints.call_keys(self._client, call, parent.hash, 1000)
                assert {each.sender, each.to} <= keys.accounts
                self.counts["slots of calls"] += len(keys.slots)

    async def _check_witness(
        self, block: Block, parent: Header
    ) -> tuple[Outcome, Keys]:
        """Execute a block with its witness, and return what is read."""
        witness = await state.witness(
            self._client, block.header.number, block.header.hash
        )
        assert witness.headers[parent.hash] == parent
        nodes = ProofNodes(witness.nodes)
        found = WatchedState(parent.state_root, nodes, witness.codes)
        origin = self._origin(block, found)
        outcome, root = execute(origin, found.open_trie())
        assert root == block.header.state_root
        for name, promised, computed in computed_fields(block.header, outcome):
            assert promised == computed, name
        self.counts["nodes"] += len(nodes)
        self.counts["values"] += len(found.read)
        return outcome, found.read

    async def _fetches(self, block: Block, parent: Header, keys: Keys) -> int:
        """Execute a block with proofs. Return how often values had to be fetched."""
        anchor = Anchor(parent.number, parent.hash, parent.state_root)
        nodes, codes = ProofNodes(), dict[Hash32, bytes]()
        fetches = 0
        while True:
            fetched = await fetch([self._client], anchor, keys)
            fetches += 1
            for rows in fetched.nodes.rows(parent.state_root).values():
                nodes.add(rows.values())
            codes |= fetched.values.codes
            origin = self._origin(block, ProvedState(parent.state_root, nodes, codes))
            try:
                outcome = execute_block(
                    block,
                    origin.fork,
                    self._config,
                    World(origin.state),
                    origin.ancestor_hashes,
                    lambda: ZERO_HASH,
                )
            except UnknownValues as error:
                keys = error.keys
                continue
            fields = list(computed_fields(block.header, outcome))
            assert all(promised == computed for _, promised, computed in fields)
            return fetches

    def _origin(self, block: Block, parent_state: ProvedState) -> Origin:
        number = block.header.number
        first = max(number - ANCESTORS_KEPT, 0)
        hashes = [each.header.hash for each in self._line[first:number]]
        fork = self._config.fork_at(number, block.header.timestamp, True)
        return Origin(block, fork, self._config, parent_state, hashes[::-1])
