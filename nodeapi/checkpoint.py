"""The choice of the block at which a network starts, which has to be trusted.

Everything else that upstreams send is verified, down from this block and up from it. Only
its hash can't be. It is given, or it is the finalized block on which upstreams agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from evm.chain_config import UnsupportedFork
from nodeapi.chain.proved_blocks import LOWEST_CHECKPOINT
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable, WrongBlock

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from nodeapi.upstreams.source import BlockRef, BlockSource

_ERRORS = (UpstreamUnavailable, UpstreamError, WrongBlock)


class NoCheckpoint(Exception):
    """Raised when a network can't start at the wanted block."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block at which a network can start.

    supporters: number of upstreams that have it on their chain. upstreams: of all.
    """

    header: Header
    supporters: int
    upstreams: int


async def find_checkpoint(
    sources: Sequence[BlockSource],
    wanted: bytes | None,
    agree: int,
    config: ChainConfig,
) -> Candidate:
    """Return the block with a hash, or the newest finalized one on which upstreams agree.

    wanted: the hash, None for the finalized block. agree: number of upstreams that have to
        have the block on their chain.

    Raises: NoCheckpoint.
    """
    if wanted is None:
        candidates = await _finalized(sources)
        if not candidates:
            raise NoCheckpoint("no upstream has a finalized block")
    else:
        candidates = [wanted]
    best = None
    for block_hash in candidates:
        found = await _candidate(sources, block_hash)
        if found is not None and found.supporters >= agree:
            _require_suitable(found.header, config)
            return found
        best = best or found
    if best is None:
        name = "the finalized block" if wanted is None else f"block 0x{wanted.hex()}"
        raise NoCheckpoint(f"no upstream sends {name}")
    raise NoCheckpoint(
        f"{agree} upstreams have to agree, but only {best.supporters} of "
        f"{best.upstreams} have block {best.header.number} "
        f"(0x{best.header.hash.hex()}) on their chain"
    )


async def _finalized(sources: Sequence[BlockSource]) -> list[bytes]:
    """Return the hashes of the upstreams' finalized blocks, the newest block first.

    They may differ by some epochs.
    """

    async def ask(source: BlockSource) -> BlockRef | None:
        try:
            return await source.head("finalized")
        except _ERRORS:
            return None

    found = await asyncio.gather(*map(ask, sources))
    blocks = {block.hash: block.number for block in found if block is not None}
    by_number = sorted(blocks.items(), key=itemgetter(1), reverse=True)
    return [block_hash for block_hash, _ in by_number]


async def _candidate(
    sources: Sequence[BlockSource], block_hash: bytes
) -> Candidate | None:
    """Return a block with the number of upstreams that have it on their chain.

    None if no upstream has it.
    """

    async def ask(source: BlockSource) -> tuple[Header | None, bool]:
        try:
            header = await source.header(block_hash)
            if header is None:
                return None, False
            canonical = await source.at(header.number)
        except _ERRORS:
            return None, False
        return header, canonical is not None and canonical.hash == block_hash

    answers = await asyncio.gather(*map(ask, sources))
    headers = [header for header, _ in answers if header is not None]
    if not headers:
        return None
    supporters = sum(is_canonical for _, is_canonical in answers)
    return Candidate(headers[0], supporters, len(sources))


def _require_suitable(header: Header, config: ChainConfig) -> None:
    """Raise NoCheckpoint if a network can't start at a block."""
    number = header.number
    if number < LOWEST_CHECKPOINT:
        raise NoCheckpoint(
            f"block {number} is too early: a checkpoint must be above block "
            f"{LOWEST_CHECKPOINT - 1}"
        )
    try:
        is_late = config.fork_at(number, header.timestamp, is_merged=True).has_blobs
    except UnsupportedFork as error:
        raise NoCheckpoint(str(error)) from error
    if not is_late or header.blob_gas_used is None:
        raise NoCheckpoint(
            f"block {number} is too early: a checkpoint must be of Cancun or later"
        )
