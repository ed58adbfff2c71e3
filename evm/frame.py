"""A call frame: what the instructions of one message call or creation work on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from evm.addresses import SYSTEM_ADDRESS
from evm.frame_errors import FrameError
from evm.gas import GasMeter
from evm.memory import memory_cost, memory_end

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.context import FrameState, TransactionContext
    from evm.message import Message


TRANSFER_TOPIC = bytes.fromhex(
    "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
)
"""Transfer(address,address,uint256)"""


class Frame(GasMeter, ABC):
    """A message in execution, with its stack, memory, gas and program counter.

    A frame is freed when its call ends. Its effects besides the state (logs, refund,
    touched and destroyed accounts) are in the transaction's `Effects`.
    """

    error: FrameError | None = None
    output: bytes = b""
    """Return data, the data of a revert, or the code of a new contract."""
    return_data: bytes | memoryview = b""
    """The output of the last call (EIP-211)."""
    refused_code: bytes | None = None
    """The code that a creation returned, if it was not stored."""
    pc: int = 0
    """The program counter."""

    def __init__(
        self, state: FrameState, message: Message, transaction: TransactionContext
    ) -> None:
        self.state = state
        self.fork = state.fork
        self.prices = state.fork.prices
        self.message = message
        self.transaction = transaction
        self.code = message.code
        self.stack: list[int] = []
        """Items of 0 ≤ item < 2**256. The last one is the top."""
        self.memory = bytearray()
        """Its size is a multiple of 32 bytes."""
        self.gas_remaining = message.gas
        """The interpreter's loop has a copy while it runs."""

    @property
    def is_success(self) -> bool:
        """Whether the frame has ended without an error."""
        return self.error is None

    @property
    def gas_used(self) -> int:
        """The gas that the frame has used, all of it after most errors."""
        return self.message.gas - self.gas_remaining

    # Memory

    def expand(self, start: int, size: int) -> None:
        """Charge for the memory up to the end of a range, and expand it.

        Size 0 has no effect. Raises: GasOverflow, OutOfGas.
        """
        end = memory_end(start, size)
        self.charge(memory_cost(self.memory, end))
        self.grow(end)

    def grow(self, end: int) -> None:
        """Expand the memory to `end` bytes, which were paid for."""
        memory = self.memory
        missing = ((end + 31) & ~31) - len(memory)
        if missing > 0:
            try:
                memory.extend(bytes(missing))
            except BufferError:
                # A view of the memory still exists, such as the input of an earlier call.
                self.memory = memory + bytes(missing)

    def fail(self, error: FrameError) -> None:
        """End the frame with an error."""
        # A traceback refers to the frame. The cycle would delay freeing the frame until
        # the next garbage collection.
        error.__context__ = None
        self.error = error.with_traceback(None)
        if self.state_gas_used or self.spilled:
            self.return_all_state()
        if error.burns_gas:
            self.gas_remaining = 0
        if not error.keeps_output:
            self.return_data = self.output = b""

    # What instructions do beyond the frame. Watched frames report it.

    @abstractmethod
    def run_child(self, name: str, message: Message) -> Frame:
        """Run a call or a creation, and return its frame. name: of the instruction."""

    def refuse_child(self, name: str, message: Message, error: str, used: int) -> None:
        """Note a call or a creation that can't begin. It has no effect here.

        name: of the instruction. error: geth's text. used: gas that is lost.
        """

    def note_creation(self, address: bytes) -> None:
        """Note the address of a creation that may have no frame."""

    def log(self, address: Address, topics: tuple[bytes, ...], data: bytes) -> None:
        """Add a log. topics: 32 bytes each."""
        self.transaction.effects.logs.append((address, topics, data))

    def log_transfer(self, sender: Address, receiver: Address, value: int) -> None:
        """Add the log of a transfer of ether, unless it moves nothing (EIP-7708)."""
        if self.fork.logs_transfers and value and sender != receiver:
            topics = TRANSFER_TOPIC, sender.rjust(32, b"\0"), receiver.rjust(32, b"\0")
            self.log(SYSTEM_ADDRESS, topics, value.to_bytes(32, "big"))

    def destroy(self, beneficiary: bytes, balance: int) -> None:
        """Note a SELFDESTRUCT, which moved this balance. It has no effect here."""
