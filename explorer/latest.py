"""The newest blocks of a network, as rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

from evm.headers import decode_header
from legible import words
from networks.models import Network
from nodeapi.models import Block
from nodeapi.status.block_states import State, Tags

PAGE_SIZE = 25
"""Maximum number of blocks on a page."""

_COLUMNS = ("number", "hash", "transaction_count", "gas_used", "header")


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A block, formatted as text."""

    number: int
    hash: str
    brief: str
    """The beginning and the end of the hash."""
    timestamp: int
    """Unix seconds."""
    moment: str
    age: str
    """Time since the block's timestamp, such as `12 s`."""
    transactions: int
    gas_used: str
    gas_limit: str
    gas_share: str
    """Used part of the gas limit, such as `42.1%`; also the width of its bar."""
    base_fee: str
    """Empty before London."""
    state: State


def block_lines(
    network: Network, tags: Tags, now: float, below: int | None = None
) -> list[BlockLine]:
    """Return a page of canonical blocks, the newest first.

    now: Unix seconds.
    below: only blocks with lower numbers are returned. If None, blocks up to the head are.
    """
    blocks = Block.objects.filter(network=network, is_canonical=True)
    if below is not None:
        blocks = blocks.filter(number__lt=below)
    newest = blocks.only(*_COLUMNS).order_by("-number")[:PAGE_SIZE]
    return [_line(block, tags, now) for block in newest]


def _line(block: Block, tags: Tags, now: float) -> BlockLine:
    header = decode_header(bytes(block.header))
    block_hash = bytes(block.hash).hex()
    share = header.gas_used / header.gas_limit if header.gas_limit else 0
    base_fee = header.base_fee_per_gas
    return BlockLine(
        number=block.number,
        hash=f"0x{block_hash}",
        brief=words.shortened(f"0x{block_hash}"),
        timestamp=header.timestamp,
        moment=words.moment(header.timestamp),
        age=words.age(now - header.timestamp),
        transactions=block.transaction_count,
        gas_used=words.number(header.gas_used),
        gas_limit=words.number(header.gas_limit),
        gas_share=f"{share:.1%}",
        base_fee="" if base_fee is None else words.short_gwei(base_fee),
        state=tags.state(block.number, is_canonical=True),
    )
