"""A transaction watched while it is executed: what it calls, touches and logs.

`watched` gives a fork whose states report to their `watcher`. What is executed stays
the same: frames and opcodes are the fork's own, with a report before or after.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from eth.exceptions import ContractCreationCollision, VMError
from eth_utils.exceptions import ValidationError

from nodeapi.evm.computation import Frame, HomesteadFrame
from nodeapi.evm.delegations import delegate_of
from nodeapi.evm.executor import TransactionExecutor
from nodeapi.evm.interpreter import OpcodeTable
from nodeapi.evm.signatures import CURVE_ORDER
from nodeapi.tracers.failures import creation_failure, failure
from nodeapi.tracers.frames import CREATIONS, UNPAID_CODE, CallFrame, FrameLog
from nodeapi.tracers.watched_opcodes import COLLISION, watch_opcodes

if TYPE_CHECKING:
    from nodeapi.evm.forks import Fork
    from nodeapi.evm.transactions import Transaction

FRAME_BYTES = 256
"""What a frame counts for besides its data, where frames are limited."""


class Watcher:
    """What is known of the transaction in execution, or of the last one.

    `enter` and `exit` may be overridden: they see every frame, in geth's order.
    """

    unpaid_code_is_error = False
    """Whether a contract that came without the code that could not be paid for, which
    was no failure before Homestead, ends its frame with an error."""
    top: CallFrame
    """The transaction's own frame."""
    accounts: set[bytes]
    """What geth's prestate tracer looks up; whatever the transaction changes is there."""
    slots: dict[bytes, set[int]]
    """Slots that were read or written, by contract."""
    created: set[bytes]
    """Where contracts were to be created."""
    destroyed: set[bytes]
    """Contracts that destroyed themselves for good, even where that was undone."""
    is_overflown: bool
    """Whether there were more frames than the limit allows; `top` is then incomplete."""

    def __init__(self, limit_bytes: int = sys.maxsize) -> None:
        """Watch one block's transactions, one after the other.

        limit_bytes: of the frames of one transaction, with their data.
        """
        self._limit_bytes = limit_bytes
        self.log_count = 0
        """Logs of the block so far, those of reverted calls left out."""
        self._all_may_be_destroyed = False
        self.created = set()
        self.destroyed = set()
        self._forget()

    def _forget(self) -> None:
        self.accounts = set()
        self.slots = {}
        # Most transactions leave them empty, and a set is hundreds of bytes.
        if self.created:
            self.created = set()
        if self.destroyed:
            self.destroyed = set()
        self.is_overflown = False
        self._bytes = 0
        self._open: list[tuple[CallFrame, int]] = []
        """Frames that have begun, with the number of logs before them."""

    def watched(self, fork: Fork) -> Fork:
        """Return the fork whose states can have this watcher."""
        return watched(fork)

    # A transaction

    def begin(self, state: Any, transaction: Transaction) -> None:
        """See a transaction before it pays for its gas."""
        self._forget()
        fork: Fork = state.fork
        self._all_may_be_destroyed = not fork.has_parent_beacon_root
        accounts = self.accounts
        accounts.add(transaction.sender)
        accounts.add(state.execution_context.coinbase)
        if not transaction.authorization_list:
            return
        # They may change whose code the receiver runs: what counts is what was.
        self.look_at_delegate(state, transaction.to)
        for authorization in transaction.authorization_list:
            # Whose it is counts, not whether it holds.
            if authorization.s <= CURVE_ORDER // 2:
                with suppress(ValidationError):
                    accounts.add(authorization.authority())

    def end(self, state: Any, transaction: Transaction, gas_used: int) -> None:
        """See it when it is over, its fees booked."""
        self.top.gas_used = gas_used

    def look_at_delegate(self, state: Any, address: bytes) -> None:
        """See whose code an account runs, if it delegates."""
        delegate = delegate_of(state.get_code(address))
        if delegate is not None:
            self.accounts.add(delegate)

    # Frames

    def enter(self, frame: CallFrame) -> None:
        """See a frame begin."""
        if frame.to is not None:
            self.accounts.add(frame.to)
            if frame.type in CREATIONS:
                self.created.add(frame.to)
        parents = self._open
        if not parents:
            self.top = frame
        elif not self.is_overflown:
            parents[-1][0].calls.append(frame)
        parents.append((frame, self.log_count))
        self._bytes += FRAME_BYTES + len(frame.input)
        if self._bytes > self._limit_bytes:
            self._give_up()

    def exit(self, frame: CallFrame) -> None:
        """See it end, with `output`, `error` and (below the top) `gas_used`."""
        _, log_count = self._open.pop()
        if frame.error is not None:
            self.log_count = log_count
        self._bytes += len(frame.output)
        if self._bytes > self._limit_bytes:
            self._give_up()

    def destroy(self, frame: CallFrame) -> None:
        """See a SELFDESTRUCT."""
        if self._all_may_be_destroyed or frame.sender in self.created:
            self.destroyed.add(frame.sender)
        self.enter(frame)
        self.exit(frame)

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """See what the frame that runs logs."""
        frame, _ = self._open[-1]
        index = self.log_count
        self.log_count = index + 1
        if not self.is_overflown:
            position = len(frame.calls)
            frame.logs.append(FrameLog(address, topics, data, index, position))
        self._bytes += FRAME_BYTES + len(data)
        if self._bytes > self._limit_bytes:
            self._give_up()

    def _give_up(self) -> None:
        """Keep no frames of this transaction: there are too many, or too long ones."""
        if not self.is_overflown:
            self.is_overflown = True
            for frame, _ in self._open:
                frame.calls, frame.logs = [], []


def conclude(frame: CallFrame, computation: Any) -> None:
    """Put into a frame how its execution ended, but for the gas."""
    frame.output = computation.output
    error = computation._error
    if error is None:
        if computation.returned is not None:
            unpaid = len(computation.returned) > len(frame.output)
            frame.output = computation.returned
            if unpaid and computation.watcher.unpaid_code_is_error:
                frame.error = UNPAID_CODE
        return
    frame.error = computation.failure
    if frame.error is None:
        # It did not fail while it ran: it was not let in, or its code was not.
        is_collision = isinstance(error, ContractCreationCollision)
        frame.error = COLLISION if is_collision else creation_failure(computation)


class WatchedFrame:
    """Mixed in before a Computation of ours."""

    msg: Any
    state: Any
    _log_entries: list[Any]
    before: tuple[list[int], int]
    """Operands and gas that a remembered opcode found."""
    pending: tuple[str, bytes | None] | None = None
    """Kind and account of the call that is about to begin."""
    failure: str | None = None
    returned: bytes | None = None
    """The code of a contract that was made without it, where it could not be paid for."""
    gas_returned = 0

    def __init__(self, state: Any, message: Any, transaction_context: Any) -> None:
        super().__init__(state, message, transaction_context)  # type: ignore[call-arg]
        self.watcher: Watcher = state.watcher
        self.slots = self.watcher.slots.setdefault(message.storage_address, set())

    @classmethod
    def opcode_table(cls) -> OpcodeTable:
        """Return this class's opcodes, the watched ones wrapped."""
        table: OpcodeTable | None = cls.__dict__.get("_watched_table")
        if table is None:
            plain = super().opcode_table()  # type: ignore[misc]
            table = cls._watched_table = watch_opcodes(plain)  # type: ignore[attr-defined]
        return table

    def _fail(self, error: VMError) -> None:
        self.failure = failure(self, error)
        super()._fail(error)  # type: ignore[misc]

    def return_gas(self, amount: int) -> None:
        """Give back gas; that of a call that was refused is seen nowhere else."""
        self.gas_returned = amount
        super().return_gas(amount)  # type: ignore[misc]

    def add_log_entry(
        self, account: bytes, topics: tuple[int, ...], data: bytes
    ) -> None:
        """Log, and report it."""
        super().add_log_entry(account, topics, data)  # type: ignore[misc]
        self.watcher.log(account, self._log_entries[-1][2], data)

    def apply_child_computation(self, message: Any) -> Any:
        """Run a call or a creation within its frame."""
        assert self.pending is not None
        (name, to), self.pending = self.pending, None
        watcher = self.watcher
        if to is None:
            to, data = message.storage_address, message.code
        else:
            data = bytes(message.data)
            if message.is_delegation:
                watcher.accounts.add(message.code_address)
        value = None if name == "STATICCALL" else message.value
        sender = self.msg.storage_address
        # In the fields' order: with their names it takes twice as long.
        frame = CallFrame(name, sender, to, message.gas, data, value, message.depth)
        watcher.enter(frame)
        computation = super().apply_child_computation(message)  # type: ignore[misc]
        conclude(frame, computation)
        frame.gas_used = computation.get_gas_used()
        watcher.exit(frame)
        return computation


class WatchedFrontierFrame(WatchedFrame):
    """Before Homestead, who couldn't pay for a contract's code got one without it."""

    @classmethod
    def apply_message(cls, *arguments: Any, **named: Any) -> Any:
        """Remember what code was returned."""
        computation = super().apply_message(*arguments, **named)  # type: ignore[misc]
        if computation.msg.is_create:
            computation.returned = computation.output
        return computation


class WatchedExecutor(TransactionExecutor):
    """Runs transactions before the eyes of their state's watcher."""

    def __call__(self, transaction: Transaction) -> Any:
        """Check and execute a transaction. Raises: eth_utils.ValidationError."""
        state = self.vm_state
        watcher: Watcher = state.watcher
        watcher.begin(state, transaction)
        computation = super().__call__(transaction)
        watcher.end(state, transaction, computation.transaction_gas_used)
        return computation

    def build_computation(self, message: Any, transaction: Transaction) -> Any:
        """Run the outermost message within its frame."""
        watcher: Watcher = self.vm_state.watcher
        frame = CallFrame(
            "CREATE" if message.is_create else "CALL",
            transaction.sender,
            message.storage_address,
            transaction.gas,
            transaction.data,
            transaction.value,
            0,
        )
        if message.is_delegation and not transaction.authorization_list:
            watcher.look_at_delegate(self.vm_state, transaction.to)
        watcher.enter(frame)
        computation = super().build_computation(message, transaction)
        conclude(frame, computation)
        watcher.exit(frame)
        return computation


@cache
def _watched_state(base: type[Any]) -> type[Any]:
    frames = base.computation_class
    mixin = WatchedFrame
    if not issubclass(frames, HomesteadFrame):
        assert issubclass(frames, Frame)
        mixin = WatchedFrontierFrame
    attributes = {
        "computation_class": type(frames.__name__, (mixin, frames), {}),
        "transaction_executor_class": WatchedExecutor,
    }
    return type(base.__name__, (base,), attributes)


@cache
def watched(fork: Fork) -> Fork:
    """Return the same fork, whose states report to the `watcher` they are given."""
    return replace(fork, base_state_class=_watched_state(fork.base_state_class))
