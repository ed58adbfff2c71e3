"""Logs of simulated calls, and transfers of ether as logs.

Source: go-ethereum internal/ethapi/logtracer.go; https://eips.ethereum.org/EIPS/eip-7528
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evm.tracers.frames import CREATIONS
from evm.tracers.watching import Watcher

if TYPE_CHECKING:
    from evm.intrinsic import Executable
    from evm.state import State
    from evm.tracers.frames import CallFrame

TRANSFER_TOPIC = bytes.fromhex(
    "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
)
"""keccak of `Transfer(address,address,uint256)`."""
ETHER_ADDRESS = b"\xee" * 20
"""The address of transfers' logs."""

_TRANSFERRING = CREATIONS | {"CALL", "SELFDESTRUCT"}
"""Types of call frames that transfer their value."""


class IndexedLog(NamedTuple):
    """A log with its index in the block."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    log_index: int


class TransferLogs(Watcher):
    """Collects the logs of one block's transactions, without those of failed frames.

    Indexes are assigned when logs are written. Those of failed frames are used again.
    Transfers are no part of receipts.
    """

    records = None

    def __init__(self, *, traces_transfers: bool) -> None:
        """traces_transfers: whether transfers of ether are added as logs."""
        super().__init__(limit_bytes=0)
        self._traces_transfers = traces_transfers
        self._count = 0
        self._starts: list[int] = []
        self.logs: list[IndexedLog] = []
        """The logs of the transaction in progress, or of the last one."""

    def begin(self, state: State, transaction: Executable) -> None:
        """Begin a transaction."""
        super().begin(state, transaction)
        self._starts = []
        self.logs = []

    def enter(self, frame: CallFrame) -> None:
        """Begin a frame, and add the transfer of its value."""
        super().enter(frame)
        self._starts.append(len(self.logs))
        if self._traces_transfers and frame.value and frame.type in _TRANSFERRING:
            assert frame.to is not None
            topics = (
                TRANSFER_TOPIC,
                frame.sender.rjust(32, b"\0"),
                frame.to.rjust(32, b"\0"),
            )
            self.log(ETHER_ADDRESS, topics, frame.value.to_bytes(32, "big"))

    def exit(self, frame: CallFrame) -> None:
        """End a frame, and remove its logs if it has failed."""
        super().exit(frame)
        start = self._starts.pop()
        if frame.error is not None:
            self._count -= len(self.logs) - start
            del self.logs[start:]

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """Add a log of the running frame."""
        self.logs.append(IndexedLog(address, topics, data, self._count))
        self._count += 1
