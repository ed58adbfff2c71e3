"""Transactions and their receipts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from jsonrpc.later import Later
from nodeapi.ports.answers import Document, MaybeAnswer


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a transaction in the canonical chain."""

    block_hash: bytes
    block_number: int
    index: int


class Transactions(Protocol):
    """Reads transactions and receipts."""

    def find_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Later[Place | None]:
        """Return the place of a transaction on the canonical chain, or None."""

    def transaction_by_hash(self, network_id: int, transaction_hash: bytes) -> Document:
        """Return the transaction object of a canonical block's transaction."""

    def transaction_by_block_hash_and_index(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Document:
        """Return the transaction at a place in a block."""

    def raw_transaction(
        self, network_id: int, transaction_hash: bytes
    ) -> Later[bytes | None]:
        """Return a canonical block's transaction as EIP-2718 encodes it."""

    def raw_transaction_at(
        self, network_id: int, block_hash: bytes, index: int
    ) -> Later[bytes | None]:
        """Return the transaction at an index of a block as EIP-2718 encodes it."""

    def receipt(self, network_id: int, transaction_hash: bytes) -> MaybeAnswer:
        """Return the receipt of a canonical block's transaction."""

    def block_receipts(
        self, network_id: int, block_hash: bytes, *, owner: Hashable = None
    ) -> MaybeAnswer:
        """Return all receipts of a block as an array.

        owner: the account that a long result counts for until it has been read.
        """

    def raw_receipts(
        self, network_id: int, block_hash: bytes, *, owner: Hashable = None
    ) -> MaybeAnswer:
        """Return all receipts of a block as EIP-2718 encodes them, as an array.

        owner: the account that a long result counts for until it has been read.
        """
