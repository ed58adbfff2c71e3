"""Effects of a transaction's call frames besides the state: logs, refund and others."""

from __future__ import annotations

from eth_typing import Address

LogEntry = tuple[Address, tuple[bytes, ...], bytes]
"""Address, topics of 32 bytes each, data."""
Checkpoint = tuple[int, int, int, int]
"""Number of logs, of destroyed accounts and of touched accounts; the refund."""

RIPEMD160 = Address((3).to_bytes(20, "big"))
"""The only account that stays touched if the call that touched it fails. This follows
mainnet's history: https://github.com/ethereum/EIPs/issues/716. As in geth, it only
applies to calls without value. A transfer of ether is reverted as usual."""


class Effects:
    """Logs, gas refund, destroyed and touched accounts of one transaction.

    All call frames of the transaction share one object. A failed frame restores the
    checkpoint taken at its beginning.
    """

    __slots__ = ("created", "destroyed", "logs", "refund", "touched")

    def __init__(self) -> None:
        self.logs: list[LogEntry] = []
        self.refund = 0
        """Gas refund. It may be negative within a frame (EIP-1283)."""
        self.destroyed: dict[Address, None] = {}
        """Accounts that are deleted at the end of the transaction, in order."""
        self.touched: list[Address] = []
        """Accounts that are deleted at the end of the transaction if they are empty."""
        self.created: set[Address] = set()
        """Contracts created by the transaction, including failed creations."""

    def checkpoint(self) -> Checkpoint:
        """Return a checkpoint for `undo`."""
        return len(self.logs), len(self.destroyed), len(self.touched), self.refund

    def undo(self, checkpoint: Checkpoint) -> None:
        """Remove all effects since the checkpoint."""
        logs, destroyed, touched, self.refund = checkpoint
        del self.logs[logs:]
        while len(self.destroyed) > destroyed:
            self.destroyed.popitem()
        is_ripemd160_touched = RIPEMD160 in self.touched[touched:]
        del self.touched[touched:]
        if is_ripemd160_touched:
            self.touched.append(RIPEMD160)
