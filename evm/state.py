"""The state on which transactions are executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.context import FrameState
from evm.instructions import entries_of
from evm.message_call import MessageCall

if TYPE_CHECKING:
    from evm.context import BlockContext, TransactionContext
    from evm.intrinsic import Executable
    from evm.message import Message
    from evm.rules.fork import Fork
    from evm.world import World


class State(FrameState):
    """A state that makes a transaction's frames, and is told of its beginning and end.

    Observed states (`evm.tracers.watching`) report them.
    """

    def __init__(self, world: World, block: BlockContext, fork: Fork) -> None:
        super().__init__(world, block, fork, entries_of(fork))

    def frame(self, message: Message, transaction: TransactionContext) -> MessageCall:
        """Return a transaction's outermost frame, which was not run yet."""
        return MessageCall(self, message, transaction)

    def begin(self, transaction: Executable) -> None:
        """Begin a transaction, before it pays for its gas."""

    def run_outermost(self, frame: MessageCall, transaction: Executable) -> None:
        """Run a transaction's outermost frame, unless it has failed already."""
        if frame.error is None:
            frame.run()

    def end(self, transaction: Executable, gas_used: int) -> None:
        """End a transaction, after its fees were paid."""
