"""The chains of which geth's responses are recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from eth_typing import Address

from evm.blocks import Block, decode_block, encode_block
from evm.rules.fork import Fork
from evm.rules.forks import AMSTERDAM, OSAKA
from samples.builder import ChainBuilder
from tests.scenarios.tracing import tracing
from tests.support import sample
from tests.support.random_blocks import RandomBlocks

_SEED = 3
_RANDOM_BLOCKS = 12
_MOST_GAS = 3_000_000


@dataclass(frozen=True, slots=True)
class Chain:
    """A genesis.json, and the RLP of each block after the genesis block."""

    genesis: dict[str, Any]
    raw: list[bytes]
    is_general: bool = True
    """Whether requests are recorded that have little to do with the chain's blocks."""
    fork: Fork = OSAKA
    """The one whose instructions random contracts have."""

    @property
    def blocks(self) -> list[Block]:
        """The decoded blocks after the genesis block."""
        return [decode_block(raw) for raw in self.raw]

    @property
    def head(self) -> str:
        """The hash of the newest block, 0x-prefixed."""
        return "0x" + decode_block(self.raw[-1]).header.hash.hex()


@cache
def _sample() -> Chain:
    return Chain(sample.genesis(), sample.raw_blocks())


@cache
def _tracing() -> Chain:
    genesis, blocks = tracing()
    return Chain(genesis, [encode_block(block) for block in blocks])


@cache
def _amsterdam() -> Chain:
    genesis = RandomBlocks.genesis(_SEED)
    chain = ChainBuilder(genesis)

    def nonce(address: Address) -> int:
        account = chain.state.account(address)
        return 0 if account is None else account.nonce

    maker = RandomBlocks(_SEED, nonce)
    while len(chain.blocks) < _RANDOM_BLOCKS:
        number = len(chain.blocks) + 1
        transactions, draft = maker.transactions(number), chain.fork()
        for each in transactions:
            draft.add(each)
        block = draft.block(**maker.attributes(number)._asdict())
        # Other blocks have no traces, or long ones.
        if transactions and block.header.gas_used <= _MOST_GAS:
            chain = draft
    raw = [encode_block(block) for block in chain.blocks]
    return Chain(genesis, raw, is_general=False, fork=AMSTERDAM)


CHAINS: dict[str, Callable[[], Chain]] = {
    "sample": _sample,
    "tracing": _tracing,
    "amsterdam": _amsterdam,
}
"""By name. geth accepts every block of the sample chain.

`tracing` is built for these recordings, see `tests/scenarios/tracing.py`. `amsterdam`
has random transactions.
"""
