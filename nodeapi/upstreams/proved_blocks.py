"""Blocks with receipts that are proved by the hash of a later block, not executed.

A trusted block's header names its parent's hash, and so on downwards. Each header has the
roots of the block's transactions, uncles, withdrawals and receipts. So an upstream can
omit blocks, but not send false ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eth_typing import Hash32

from evm.blocks import Block, decode_block
from evm.receipts import Receipt
from evm.rlp import RlpError
from nodeapi.upstreams.errors import (
    UnsupportedBlock,
    UpstreamError,
    UpstreamUnavailable,
    WrongBlock,
)
from nodeapi.upstreams.receipts import block_receipts
from nodeapi.upstreams.source import BlockRef, BlockSource

_ERRORS = (UpstreamUnavailable, UpstreamError, WrongBlock, UnsupportedBlock)


class Link(NamedTuple):
    """The number and the hash of a block that is known to be on the chain."""

    number: int
    hash: Hash32


@dataclass(frozen=True, slots=True)
class ProvedBlock:
    """A block, and its transactions' receipts in order."""

    block: Block
    receipts: list[Receipt]


class BlocksUnavailable(Exception):
    """Raised if no upstream sends the requested blocks."""


async def proved_blocks(
    sources: Sequence[BlockSource], newest: Link, count: int
) -> list[ProvedBlock]:
    """Return a block and its ancestors, the newest first.

    sources: upstreams in the order in which they are asked. count: the number of blocks.

    Raises: BlocksUnavailable with the reason of each upstream.
    """
    reasons = []
    for source in sources:
        try:
            return await _from(source, newest, count)
        except _ERRORS as error:
            reasons.append(str(error))
    shown = "; ".join(dict.fromkeys(reasons)) or "no upstream is enabled"
    raise BlocksUnavailable(
        f"no upstream sends block {newest.number} (0x{newest.hash.hex()}) with "
        f"{count - 1} ancestors: {shown}"
    )


async def _from(source: BlockSource, newest: Link, count: int) -> list[ProvedBlock]:
    line = await _line(source, newest, count)
    return list(await asyncio.gather(*(_block(source, ref) for ref in line)))


async def _line(source: BlockSource, newest: Link, count: int) -> list[BlockRef]:
    """Return the references of a block and its ancestors, linked by their hashes.

    They are read by number. Where the upstream's chain is another one, they are read by
    hash.
    """
    lowest = newest.number - count + 1
    numbered = {
        ref.number: ref
        for ref in await source.at_each(range(lowest, newest.number + 1))
        if ref is not None
    }
    line: list[BlockRef] = []
    wanted = newest
    while len(line) < count:
        ref = numbered.get(wanted.number)
        if ref is None or ref.hash != wanted.hash:
            ref = await source.reference(wanted.hash)
            if ref is None:
                raise UpstreamUnavailable(f"it does not have block {wanted.number}")
        if ref.number != wanted.number:
            raise WrongBlock(f"block {ref.number} is the parent of {wanted.number + 1}")
        line.append(ref)
        wanted = Link(ref.number - 1, ref.parent_hash)
    return line


async def _block(source: BlockSource, ref: BlockRef) -> ProvedBlock:
    raw = await source.block(ref.hash, ref.number)
    if raw is None:
        raise UpstreamUnavailable(f"it does not have block {ref.number}")
    try:
        block = await asyncio.to_thread(decode_block, raw)
    except RlpError as error:
        raise UnsupportedBlock(f"block {ref.number}: {error}") from error
    receipts = await block_receipts(
        source.client,
        ref.hash,
        block.header.receipts_root,
        [transaction.hash for transaction in block.transactions],
    )
    if len(receipts) != len(block.transactions):
        raise WrongBlock(f"block {ref.number} has another number of receipts")
    return ProvedBlock(block, receipts)
