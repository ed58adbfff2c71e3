"""Blocks, headers, and the chain that they form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jsonrpc.later import Later
from networks.directory import NetworkView
from nodeapi.ports.answers import Document

if TYPE_CHECKING:
    from evm.headers import Header

BlockId = tuple[int, bytes]
"""Number and hash of a block."""


@dataclass(frozen=True, slots=True)
class BlockChanges:
    """The changes of the canonical chain since a block was its head.

    fork: the newest block of both chains.
    removed, added: blocks above it, in ascending order.
    """

    fork: BlockId
    removed: list[BlockId]
    added: list[BlockId]

    @property
    def newest(self) -> BlockId:
        """The newest of the added blocks, or the fork block if none was added."""
        return self.added[-1] if self.added else self.fork


MAX_CHANGED_BLOCKS = 1000
"""Maximum number of added blocks that one `changes_since` reads."""


class Blocks(Protocol):
    """Reads blocks, headers, and changes of the canonical chain.

    Blocks that are named by hash may be side blocks.
    """

    def head(self, network_id: int) -> Later[NetworkView]:
        """Return a network with its current head."""

    def head_number(self, network_id: int) -> Later[int]:
        """Return the number of the newest block."""

    def canonical_hash(
        self, network_id: int, number_or_tag: int | str
    ) -> Later[bytes | None]:
        """Return the hash of the canonical block with a number or a tag, or None."""

    def header(self, network_id: int, block_hash: bytes) -> Later[Header | None]:
        """Return the header of any stored block, or None if the block is unknown."""

    def block_by_hash(
        self,
        network_id: int,
        block_hash: bytes,
        full: bool,
        with_total_difficulty: bool,
    ) -> Document:
        """Return a block, canonical or not."""

    def block_by_number(
        self,
        network_id: int,
        number_or_tag: int | str,
        full: bool,
        with_total_difficulty: bool,
    ) -> Document:
        """Return the canonical block with a number or a tag."""

    def raw_block(self, network_id: int, block_hash: bytes) -> Later[bytes | None]:
        """Return a block's RLP, or None if the block is unknown."""

    async def changes_since(
        self, network_id: int, block_hash: bytes, limit: int = MAX_CHANGED_BLOCKS
    ) -> BlockChanges | None:
        """Return the changes of the chain since a block was the head, as of one moment.

        limit: maximum number of added blocks.

        Returns: None if the block is not stored any more.
        """
