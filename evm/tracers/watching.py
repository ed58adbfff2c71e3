"""Observation of a transaction's execution: calls, accounts, slots and logs.

`Watcher.new_state` returns a state whose frames report to the watcher. The execution does
not change: instructions are the fork's own, with a report before or after.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from eth_utils.exceptions import ValidationError

from evm.addresses import address_of
from evm.delegations import delegate_of
from evm.frame_errors import UNPAID_CODE
from evm.instructions import entries_of
from evm.instructions.kinds import OPERATE
from evm.interpreter import run
from evm.message_call import MessageCall
from evm.opcodes import NUMBERS
from evm.signatures import CURVE_ORDER
from evm.state import State
from evm.tracers.frames import CREATIONS, CallFrame, FrameLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from eth_typing import Address

    from evm.context import BlockContext, Entry, TransactionContext
    from evm.frame import Frame
    from evm.instructions.kinds import Operation
    from evm.intrinsic import Executable
    from evm.message import Message
    from evm.rules.fork import Fork
    from evm.world import World

FRAME_BYTES = 256
"""Size of a frame without its data, for the limit on recorded frames."""


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
        self.run_frame: Callable[[Frame], None] = run
        """Runs a frame's code: the interpreter's loop, or one that reports each step."""
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

    def new_state(self, world: World, block: BlockContext, fork: Fork) -> State:
        """Return a state whose transactions the watcher observes."""
        return WatchedState(world, block, fork, self)

    # A transaction

    def begin(self, state: State, transaction: Executable) -> None:
        """Begin a transaction, before it pays for its gas."""
        self._reset()
        self._all_may_be_destroyed = not state.fork.keeps_destroyed_contracts
        accounts = self.accounts
        accounts.add(transaction.sender)
        accounts.add(state.block.coinbase)
        if not transaction.authorization_list:
            return
        # Authorizations may change the receiver's delegate. geth looks up the previous
        # one. A simulated call may have authorizations under a fork without delegations.
        if state.fork.has_delegations:
            self.add_delegate(state.world, transaction.to)
        for authorization in transaction.authorization_list:
            # geth looks up the authority even if the authorization is invalid.
            if authorization.s <= CURVE_ORDER // 2:
                with suppress(ValidationError):
                    accounts.add(authorization.authority())

    def add_delegate(self, world: World, address: Address) -> None:
        """Record the access to an account's delegate, if it has one."""
        account = world.account(address)
        code = b"" if account is None else world.code(account.code_hash)
        delegate = delegate_of(code)
        if delegate is not None:
            self.accounts.add(delegate)

    def end(self, state: State, transaction: Executable, gas_used: int) -> None:
        """End a transaction, after its fees were paid."""
        self.top.gas_used = gas_used

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
        """Add a frame of SELFDESTRUCT, and its contract if the transaction deletes it."""
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

    def conclude(self, frame: CallFrame, executed: Frame) -> None:
        """Set the output and error of a frame that was executed."""
        frame.output, error = executed.output, executed.error
        frame.error = None if error is None else str(error)
        refused = executed.refused_code
        if refused is not None and error is None:  # before Homestead
            frame.output = refused
            if self.unpaid_code_is_error:
                frame.error = UNPAID_CODE
        elif refused is not None and self.unpaid_code_is_error:
            frame.output = refused


class WatchedFrame(MessageCall):
    """A frame that reports its events to the watcher."""

    def __init__(
        self,
        state: WatchedState,
        message: Message,
        transaction: TransactionContext,
    ) -> None:
        super().__init__(state, message, transaction)
        self.watcher = state.watcher

    def run_code(self) -> None:
        """Run the code, step by step if the watcher has a tracer. Raises: FrameError."""
        self.watcher.run_frame(self)

    def run_child(self, name: str, message: Message) -> Frame:
        """Run a call or a creation, and report its beginning and its end."""
        watcher = self.watcher
        frame = self._call_frame(name, message)
        watcher.enter(frame)
        child = super().run_child(name, message)
        watcher.conclude(frame, child)
        # State gas may have been returned to a frame that had spilled it.
        frame.gas_used = max(0, message.gas - child.gas_remaining)
        watcher.exit(frame)
        return child

    def refuse_child(self, name: str, message: Message, error: str, used: int) -> None:
        """Report a call or a creation that can't begin."""
        frame = self._call_frame(name, message)
        frame.error, frame.gas_used = error, used
        self.watcher.enter(frame)
        self.watcher.exit(frame)

    def _call_frame(self, name: str, message: Message) -> CallFrame:
        watcher = self.watcher
        if message.is_create:
            to, data = message.storage_address, message.code
        else:
            to, data = message.code_address, watcher.kept_input(message.data)
            if message.delegate is not None:
                watcher.accounts.add(message.delegate)
        value = None if name == "STATICCALL" else message.value
        sender = self.message.storage_address
        # Positional arguments, because keyword arguments take twice as long.
        return CallFrame(name, sender, to, message.gas, data, value, message.depth)

    def note_creation(self, address: bytes) -> None:
        """Report a creation that may have no frame: geth looks it up before it fails."""
        self.watcher.add_creation(address)

    def log(self, address: Address, topics: tuple[bytes, ...], data: bytes) -> None:
        """Add a log, and report it."""
        super().log(address, topics, data)
        self.watcher.log(address, topics, data)

    def destroy(self, beneficiary: bytes, balance: int) -> None:
        """Report a SELFDESTRUCT."""
        sender, depth = self.message.storage_address, self.message.depth + 1
        frame = CallFrame("SELFDESTRUCT", sender, beneficiary, 0, b"", balance, depth)
        self.watcher.destroy(frame)


class WatchedState(State):
    """A state whose transactions a watcher observes."""

    def __init__(
        self, world: World, block: BlockContext, fork: Fork, watcher: Watcher
    ) -> None:
        super().__init__(world, block, fork)
        self.watcher = watcher
        self.entries = _watched_entries(fork)

    def frame(self, message: Message, transaction: TransactionContext) -> MessageCall:
        """Return a frame that reports to the watcher."""
        return WatchedFrame(self, message, transaction)

    def begin(self, transaction: Executable) -> None:
        """Begin a transaction."""
        self.watcher.begin(self, transaction)

    def run_outermost(self, frame: MessageCall, transaction: Executable) -> None:
        """Run a transaction's outermost frame, and report its beginning and its end."""
        watcher, message = self.watcher, frame.message
        call = CallFrame(
            "CREATE" if message.is_create else "CALL",
            transaction.sender,
            message.storage_address,
            transaction.gas,
            transaction.data,
            transaction.value,
            0,
        )
        if not transaction.authorization_list:
            if message.delegate is not None:
                watcher.accounts.add(message.delegate)
            elif frame.error is not None and not message.is_create:
                # The gas was not enough for the delegate's access (EIP-2780).
                watcher.add_delegate(self.world, transaction.to)
        watcher.enter(call)
        super().run_outermost(frame, transaction)
        watcher.conclude(call, frame)
        watcher.exit(call)

    def end(self, transaction: Executable, gas_used: int) -> None:
        """End a transaction."""
        self.watcher.end(self, transaction, gas_used)


# Instructions that report the accounts and slots that they access


def _access_account(operation: Operation) -> Callable[[WatchedFrame], None]:
    def run(frame: WatchedFrame) -> None:
        values = frame.stack
        word = values[-1] if values else 0
        operation(frame)
        frame.watcher.accounts.add(address_of(word))

    return run


def _access_slot(operation: Operation) -> Callable[[WatchedFrame], None]:
    def run(frame: WatchedFrame) -> None:
        values = frame.stack
        slot = values[-1] if values else 0
        operation(frame)
        frame.watcher.slots[frame.message.storage_address].add(slot)

    return run


_WRAPS = {
    **dict.fromkeys(
        ("BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"), _access_account
    ),
    **dict.fromkeys(("SLOAD", "SSTORE"), _access_slot),
}


@cache
def _watched_entries(fork: Fork) -> tuple[Entry, ...]:
    """Return the opcodes of a fork, with those wrapped that access accounts or slots."""
    entries = list(entries_of(fork))
    for name, wrap in _WRAPS.items():
        if name in fork.opcodes:
            _, gas, operation = entries[NUMBERS[name]]
            entries[NUMBERS[name]] = OPERATE, gas, wrap(operation)
    return tuple(entries)
