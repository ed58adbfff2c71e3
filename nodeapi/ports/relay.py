"""Submitted and pending transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from networks.directory import NetworkView
from nodeapi.documents.pending import PendingBlock
from nodeapi.ports.answers import Answer


class TransactionPools(Protocol):
    """Reads the pools of all networks; see `nodeapi.mempool.pools`."""

    async def status(self, network: NetworkView, payer: int) -> bytes:
        """Return the numbers of pending and queued transactions, as JSON."""

    async def content(self, network: NetworkView, payer: int) -> bytes:
        """Return the transaction objects by address and nonce, as JSON."""

    async def content_from(
        self, network: NetworkView, address: bytes, payer: int
    ) -> bytes:
        """Return the transaction objects of a sender by nonce, as JSON."""

    async def inspect(self, network: NetworkView, payer: int) -> bytes:
        """Return a line of text for each transaction by address and nonce, as JSON."""


class Relay(Protocol):
    """Sends transactions, and reads pending ones; see `nodeapi.relay`."""

    @property
    def pools(self) -> TransactionPools:
        """The transaction pools: upstreams', or local ones."""

    async def send(
        self,
        network: NetworkView,
        raw: bytes,
        payer: int,
        allow: Callable[[bytes], None],
    ) -> bytes:
        """Check a transaction, send it to every upstream, and return its hash.

        Without upstreams, it is added to the local pool.

        allow: called with the recipient, empty for a creation. Its error ends the call.
        """

    async def wait_for_receipt(
        self, network: NetworkView, transaction_hash: bytes, payer: int, seconds: float
    ) -> Answer | None:
        """Return the receipt of a transaction as soon as a block contains it.

        None if no block contains it within `seconds`.
        """

    async def pending_block(
        self, network: NetworkView, payer: int
    ) -> PendingBlock | None:
        """Return the pending block of an upstream, or None."""

    async def pending_nonce(
        self, network: NetworkView, address: bytes, payer: int
    ) -> int:
        """Return the next nonce of an account after its pending transactions."""

    async def pending_transaction(
        self, network: NetworkView, transaction_hash: bytes, payer: int
    ) -> bytes | None:
        """Return a transaction object of an upstream or the local pool, or None."""

    async def pending_raw_transaction(
        self, network: NetworkView, transaction_hash: bytes, payer: int
    ) -> bytes | None:
        """Return an encoded transaction of an upstream or the local pool, or None."""
