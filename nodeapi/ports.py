"""What the HTTP edge and the methods want of the parts below them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from keys.grants import Grant
from networks.directory import NetworkView
from nodeapi.encoding import BlockReference

Document = bytes | None | Awaitable[bytes | None]
"""JSON, None when there is no such thing; at once when it is cached."""


class Grants(Protocol):
    """Lets keys in; see `keys.grants`."""

    def resolve(self, key: str) -> Grant | Awaitable[Grant]:
        """Return what a key opens, or raise an RpcError, now or when awaited."""


class Directory(Protocol):
    """Knows the networks; see `networks.directory`."""

    def by_slug(self, slug: str) -> NetworkView | None:
        """Return the network that a base address names."""

    def by_host(self, host: str) -> NetworkView | None:
        """Return the network of a Host header, else the default one."""


class Store(Protocol):
    """Reads blocks and state; see `nodeapi.store`. Raises now or when awaited."""

    def head_number(self, network_id: int) -> int | Awaitable[int]:
        """Return the number of the newest block."""

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

    def transaction_by_block_hash_and_index(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Document:
        """Return the transaction at a place in a block."""

    def storage_at(
        self, network_id: int, address: bytes, slot: int, block: BlockReference
    ) -> bytes | Awaitable[bytes]:
        """Return the 32 bytes of a slot after a block."""

    def storage_values(
        self,
        network_id: int,
        slots: Sequence[tuple[bytes, int]],
        block: BlockReference,
    ) -> Awaitable[list[bytes]]:
        """Return the values of many slots after the same block."""

    def resolve_state(
        self, network_id: int, block: BlockReference
    ) -> Awaitable[object]:
        """Return the state that a block parameter names, or raise what it lacks."""


class Service(Protocol):
    """The parts together, to be opened and closed with the server."""

    @property
    def grants(self) -> Grants:
        """The keys."""

    @property
    def directory(self) -> Directory:
        """The networks."""

    @property
    def store(self) -> Store:
        """The blocks and the state."""

    async def start(self) -> None:
        """Open what answering needs."""

    async def stop(self) -> None:
        """Close it again."""
