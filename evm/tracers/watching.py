"""Observation of a transaction's execution: calls, accounts, slots and logs.

`watched` returns a fork whose states report to their `watcher`. The execution does not
change: frames and opcodes are the fork's own, with a report before or after.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from eth.exceptions import ContractCreationCollision, VMError
from eth_utils.exceptions import ValidationError

from evm.computation import HomesteadFrame
from evm.delegations import delegate_of
from evm.executor import TransactionExecutor
from evm.frame_errors import NonceOverflow
from evm.interpreter import OpcodeTable
from evm.signatures import CURVE_ORDER
from evm.tracers.failures import WRITE_PROTECTION, creation_failure, failure
from evm.tracers.frames import CREATIONS, UNPAID_CODE, CallFrame, FrameLog
from evm.tracers.watched_opcodes import (
    COLLISION,
    NONCE,
    forbidden_creation,
    watch_opcodes,
)

if TYPE_CHECKING:
    from evm.fork import Fork
    from evm.transactions import Transaction

FRAME_BYTES = 256
"""Size of a frame without its data, for the limit on recorded frames."""

_UNEXECUTED = {ContractCreationCollision: COLLISION, NonceOverflow: NONCE}
"""Errors of a transaction's creation that fails before its execution, with geth's text."""


class Watcher:
    """Observations of the transaction in progress, or of the last one.

    Subclasses may override `enter` and `exit`, which receive every frame in geth's
    order.
    """

    unpaid_code_is_error = False
    """Whether to report an error for unpaid code before Homestead, although the
    creation succeeded without code."""
    top: CallFrame
    """The transaction's own frame."""
    accounts: set[bytes]
    """Accounts that geth's prestate tracer looks up, including all changed ones."""
    slots: defaultdict[bytes, set[int]]
    """Slots that were read or written, by contract."""
    created: set[bytes]
    """Addresses of created contracts, including failed creations."""
    destroyed: set[bytes]
    """Contracts that executed a SELFDESTRUCT which deletes them, even if it was undone."""
    is_overflown: bool
    """Whether the frames exceeded the size limit, so that `top` is incomplete."""

    def __init__(self, limit_bytes: int = sys.maxsize) -> None:
        """Observe the transactions of one block in order.

        limit_bytes: largest total size of one transaction's frames with their data.
        """
        self._limit_bytes = limit_bytes
        self.log_count = 0
        """Number of the block's logs so far, without those of reverted calls."""
        self._all_may_be_destroyed = False
        self.created = set()
        self.destroyed = set()
        self._reset()

    def _reset(self) -> None:
        self.accounts = set()
        self.slots = defaultdict(set)
        # Reuse empty sets: most transactions add nothing, and a set takes hundreds of
        # bytes.
        if self.created:
            self.created = set()
        if self.destroyed:
            self.destroyed = set()
        self.is_overflown = False
        self._bytes = 0
        self._open: list[tuple[CallFrame, int]] = []
        """Frames in execution, each with the number of logs before it."""

    def watched(self, fork: Fork) -> Fork:
        """Return the fork whose states can have this watcher."""
        return watched(fork)

    # A transaction

    def begin(self, state: Any, transaction: Transaction) -> None:
        """Begin a transaction, before it pays for its gas."""
        self._reset()
        fork: Fork = state.fork
        self._all_may_be_destroyed = not fork.has_parent_beacon_root
        accounts = self.accounts
        accounts.add(transaction.sender)
        accounts.add(state.execution_context.coinbase)
        if not transaction.authorization_list:
            return
        # Authorizations may change the receiver's delegate. geth looks up the previous
        # one.
        self.add_delegate(state, transaction.to)
        for authorization in transaction.authorization_list:
            # geth looks up the authority even if the authorization is invalid.
            if authorization.s <= CURVE_ORDER // 2:
                with suppress(ValidationError):
                    accounts.add(authorization.authority())

    def end(self, state: Any, transaction: Transaction, gas_used: int) -> None:
        """End a transaction, after its fees were paid."""
        self.top.gas_used = gas_used

    def add_delegate(self, state: Any, address: bytes) -> None:
        """Record the access to an account's delegate, if it has one."""
        # A simulated call may have authorizations under a fork without delegations.
        if not state.fork.has_delegations:
            return
        delegate = delegate_of(state.get_code(address))
        if delegate is not None:
            self.accounts.add(delegate)

    def add_creation(self, address: bytes) -> None:
        """Record the access to a contract to be created."""
        self.accounts.add(address)
        self.created.add(address)

    # Frames

    def kept_input(self, data: bytes | memoryview) -> bytes:
        """Return a call's input for its frame, or nothing if frames are not kept."""
        return b"" if self.is_overflown else bytes(data)

    def enter(self, frame: CallFrame) -> None:
        """Begin a frame."""
        if frame.to is not None:
            if frame.type in CREATIONS:
                self.add_creation(frame.to)
            else:
                self.accounts.add(frame.to)
        parents = self._open
        if not parents:
            self.top = frame
        elif not self.is_overflown:
            parents[-1][0].add_call(frame)
        parents.append((frame, self.log_count))
        self._bytes += FRAME_BYTES + len(frame.input)
        if self._bytes > self._limit_bytes:
            self._discard_frames()

    def exit(self, frame: CallFrame) -> None:
        """End a frame, which has `output`, `error` and, below depth 0, `gas_used`."""
        _, log_count = self._open.pop()
        if frame.error is not None:
            self.log_count = log_count
        self._bytes += len(frame.output)
        if self._bytes > self._limit_bytes:
            self._discard_frames()

    def destroy(self, frame: CallFrame) -> None:
        """Add a SELFDESTRUCT."""
        if self._all_may_be_destroyed or frame.sender in self.created:
            self.destroyed.add(frame.sender)
        self.enter(frame)
        self.exit(frame)

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """Add a log of the running frame."""
        frame, _ = self._open[-1]
        index = self.log_count
        self.log_count = index + 1
        if not self.is_overflown:
            position = len(frame.calls)
            frame.add_log(FrameLog(address, topics, data, index, position))
        self._bytes += FRAME_BYTES + len(data)
        if self._bytes > self._limit_bytes:
            self._discard_frames()

    def _discard_frames(self) -> None:
        """Discard the frames of this transaction, because they exceed the limit."""
        if not self.is_overflown:
            self.is_overflown = True
            for frame, _ in self._open:
                frame.calls = frame.logs = ()


def conclude(frame: CallFrame, computation: Any) -> None:
    """Set the output and error of a frame from its computation."""
    frame.output = computation.output
    error = computation._error
    if error is None:
        if computation.returned is not None:
            unpaid = len(computation.returned) > len(frame.output)
            frame.output = computation.returned
            if unpaid and computation.watcher.unpaid_code_is_error:
                frame.error = UNPAID_CODE
        return
    if error.erases_return_data:
        frame.output = b""
    frame.error = computation.failure
    if frame.error is None:
        # It did not fail during execution: its address or its code was rejected.
        text = _UNEXECUTED.get(type(error))
        frame.error = text or creation_failure(computation)
        if computation.watcher.unpaid_code_is_error and text is None:
            frame.output = computation.output  # the rejected code


class WatchedFrame:
    """Mixin that goes before a Computation, and reports its events to the watcher."""

    msg: Any
    state: Any
    transaction_context: Any
    gas_remaining: int
    before: tuple[list[int], int]
    """Operands and gas before the last opcode of `SAVING_OPCODES`."""
    pending: tuple[str, bytes | None] | None = None
    """Type and account of the call that is about to begin."""
    failure: str | None = None
    returned: bytes | None = None
    """The code that a creation returned, before Homestead."""
    gas_returned = 0

    @property
    def watcher(self) -> Watcher:
        """The watcher of the state."""
        watcher: Watcher = self.state.watcher
        return watcher

    @classmethod
    def opcode_table(cls) -> OpcodeTable:
        """Return this class's opcodes, the watched ones wrapped."""
        table: OpcodeTable | None = cls.__dict__.get("_watched_table")
        if table is None:
            plain = super().opcode_table()  # type: ignore[misc]
            table = cls._watched_table = watch_opcodes(plain)  # type: ignore[attr-defined]
        return table

    def fail(self, error: VMError) -> None:
        """End the frame with an error, and save geth's text for it."""
        self.failure = failure(self, error)
        if self.failure == WRITE_PROTECTION:
            created = forbidden_creation(self)
            if created is not None:
                # geth looks it up before it checks that the call is static.
                self.watcher.add_creation(created)
        super().fail(error)  # type: ignore[misc]

    def return_gas(self, amount: int) -> None:
        """Add returned gas, and save the amount for the report of a rejected call."""
        self.gas_returned = amount
        self.gas_remaining += amount

    def add_log_entry(
        self, account: bytes, topics: tuple[int, ...], data: bytes
    ) -> None:
        """Add a log, and report it to the watcher."""
        super().add_log_entry(account, topics, data)  # type: ignore[misc]
        _, words, _ = self.transaction_context.effects.logs[-1]
        self.watcher.log(account, words, data)

    def apply_child_computation(self, message: Any) -> Any:
        """Run a call or a creation within its frame."""
        assert self.pending is not None
        (name, to), self.pending = self.pending, None
        watcher = self.state.watcher
        if to is None:
            to, data = message.storage_address, message.code
        else:
            data = watcher.kept_input(message.data)
            if message.delegate is not None:
                watcher.accounts.add(message.delegate)
        value = None if name == "STATICCALL" else message.value
        sender = self.msg.storage_address
        # Positional arguments, because keyword arguments take twice as long.
        frame = CallFrame(name, sender, to, message.gas, data, value, message.depth)
        watcher.enter(frame)
        computation = super().apply_child_computation(message)  # type: ignore[misc]
        conclude(frame, computation)
        frame.gas_used = computation.get_gas_used()
        watcher.exit(frame)
        return computation


class WatchedFrontierFrame(WatchedFrame):
    """A frame before Homestead, where unpaid code results in a contract without code."""

    @classmethod
    def apply_message(cls, *arguments: Any, **named: Any) -> Any:
        """Execute a message, and save the return data of a creation."""
        computation = super().apply_message(*arguments, **named)  # type: ignore[misc]
        if computation.msg.is_create:
            computation.returned = computation.output
        return computation


class WatchedExecutor(TransactionExecutor):
    """Executes transactions and reports them to the state's watcher."""

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
        if message.delegate is not None and not transaction.authorization_list:
            watcher.accounts.add(message.delegate)
        watcher.enter(frame)
        computation = super().build_computation(message, transaction)
        conclude(frame, computation)
        watcher.exit(frame)
        return computation


@cache
def _watched_state(base: Any) -> type[Any]:
    """Return a subclass of a State class whose states report to their `watcher`."""
    frames: Any = base.computation_class
    is_homestead = issubclass(frames, HomesteadFrame)
    mixin: Any = WatchedFrame if is_homestead else WatchedFrontierFrame

    class Watched(mixin, frames):  # type: ignore[misc]  # of a fork
        """A call frame of a fork that is watched."""

    class WatchedState(base):  # type: ignore[misc]
        """A state of a fork that is watched."""

        computation_class = Watched
        transaction_executor_class = WatchedExecutor

    return WatchedState


@cache
def watched(fork: Fork) -> Fork:
    """Return the fork with states that report to their `watcher`."""
    return replace(fork, base_state_class=_watched_state(fork.base_state_class))
