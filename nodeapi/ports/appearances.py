"""The transactions and blocks in which accounts appear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from jsonrpc.later import Later
from nodeapi.ports.transactions import Place


@dataclass(frozen=True, slots=True)
class BlockAppearances:
    """A canonical block in whose call frames an account appears."""

    number: int
    block_hash: bytes
    indexes: list[int]
    """The transactions with these frames, in ascending order."""


class Appearances(Protocol):
    """Finds blocks and transactions by the accounts in them."""

    def appearances_before(
        self, network_id: int, address: bytes, number: int, limit: int
    ) -> Later[list[BlockAppearances]]:
        """Return the newest blocks below a number in which an account appears."""

    def appearances_after(
        self, network_id: int, address: bytes, number: int, limit: int
    ) -> Later[list[BlockAppearances]]:
        """Return the oldest blocks above a number in which an account appears."""

    def contract_creation(self, network_id: int, address: bytes) -> Later[Place | None]:
        """Return the newest transaction that created a contract, or None."""

    def sent_transaction(
        self, network_id: int, sender: bytes, nonce: int
    ) -> Later[bytes | None]:
        """Return the hash of a sender's canonical transaction with a nonce, or None."""
