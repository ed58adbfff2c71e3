"""The chains of which geth's responses are recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evm.blocks import Block, decode_block, encode_block
from samples.scenarios.tracing import tracing
from tests.support import sample


@dataclass(frozen=True, slots=True)
class Chain:
    """A genesis.json, and the RLP of each block after the genesis block."""

    genesis: dict[str, Any]
    raw: list[bytes]

    @property
    def blocks(self) -> list[Block]:
        """The decoded blocks after the genesis block."""
        return [decode_block(raw) for raw in self.raw]

    @property
    def head(self) -> str:
        """The hash of the newest block, 0x-prefixed."""
        return "0x" + decode_block(self.raw[-1]).header.hash.hex()


def _sample() -> Chain:
    return Chain(sample.genesis(), sample.raw_blocks())


def _tracing() -> Chain:
    genesis, blocks = tracing()
    return Chain(genesis, [encode_block(block) for block in blocks])


CHAINS: dict[str, Callable[[], Chain]] = {"sample": _sample, "tracing": _tracing}
"""By name. geth accepts every block of the sample chain.

`tracing` is built for these recordings, see `samples/scenarios/tracing.py`.
"""
