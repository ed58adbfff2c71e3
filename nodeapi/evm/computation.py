"""py-evm's Computation, one frame of execution, without its costs and mistakes.

Against py-evm 0.12.1b1:

- The outermost frame is the one of depth 0. py-evm takes any frame whose sender is the
  transaction's for it, and charges init code twice where a sender, delegating to code,
  creates a contract.
- The contracts created by a transaction are known to all its frames and to no other
  transaction; whether SELFDESTRUCT removes an account depends on that (EIP-6780).
- Init code of a creating transaction is paid for in its intrinsic gas, not here.
- Nothing is formatted for a debug log that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

from eth.exceptions import OutOfGas, VMError
from eth.vm.forks.homestead.computation import HomesteadComputation
from eth.vm.forks.spurious_dragon.computation import SpuriousDragonComputation
from eth.vm.memory import Memory

from nodeapi.evm.code import Code
from nodeapi.evm.creation import limit_init_code
from nodeapi.evm.interpreter import OpcodeTable, make_opcode_table, run
from nodeapi.evm.stack import Stack

CODE_DEPOSIT_GAS = 200
"""Per byte of a new contract's code."""
MEMORY_WORD_GAS = 3
MEMORY_QUADRATIC_DENOMINATOR = 512


class ShortOfGas(OutOfGas):  # type: ignore[misc]  # py-evm has no types
    """Raised when gas is to be taken that is not there."""

    def __init__(self, amount: int, reason: str) -> None:
        self.amount = amount
        self.reason = reason
        super().__init__(amount, reason)


class GasMeter:
    """Counts a frame's gas. Refunds may fall below zero within a frame (EIP-1283)."""

    __slots__ = ("gas_refunded", "gas_remaining", "start_gas")

    def __init__(self, start_gas: int) -> None:
        self.start_gas = start_gas
        self.gas_remaining = start_gas
        self.gas_refunded = 0

    def consume_gas(self, amount: int, reason: str) -> None:
        """Take gas. Raises: OutOfGas when there is less."""
        remaining = self.gas_remaining - amount
        if remaining < 0:
            raise ShortOfGas(amount, reason)
        self.gas_remaining = remaining

    def return_gas(self, amount: int) -> None:
        """Give back gas that a child frame left."""
        self.gas_remaining += amount

    def refund_gas(self, amount: int) -> None:
        """Change what the transaction's end will refund."""
        self.gas_refunded += amount


def memory_gas(size_bytes: int) -> int:
    """Return the gas of having a memory of that size, a multiple of 32."""
    words = size_bytes // 32
    return words * MEMORY_WORD_GAS + words * words // MEMORY_QUADRATIC_DENOMINATOR


_WORKING_MEMBERS = (
    *("code", "_memory", "_stack", "consume_gas", "transaction_context"),
    *("stack_pop_ints", "stack_pop_bytes", "stack_pop_any", "stack_pop1_int"),
    *("stack_pop1_bytes", "stack_pop1_any", "stack_push_int", "stack_push_bytes"),
)
"""What a frame has for itself while it runs."""


class Frame:
    """Mixed in before a py-evm Computation of any fork."""

    opcodes: dict[int, Any]
    precompiles: dict[bytes, Any]
    return_data: bytes
    _error: VMError | None = None
    _opcode_table: OpcodeTable
    run_code = staticmethod(run)
    """The loop; whoever watches single instructions puts another one here."""

    def __init__(self, state: Any, message: Any, transaction_context: Any) -> None:
        self.state = state
        self.msg = message
        self.transaction_context = transaction_context
        self.code = Code(message.code)
        self.children: list[Any] = []
        self.accounts_to_delete: list[bytes] = []
        self.beneficiaries: list[bytes] = []
        self.contracts_created: set[bytes] = set()
        self._log_entries: list[Any] = []
        self._memory = Memory()
        self._gas_meter = meter = GasMeter(message.gas)
        self._stack = stack = Stack()
        self.consume_gas = meter.consume_gas
        self.stack_pop_ints = stack.pop_ints
        self.stack_pop_bytes = stack.pop_bytes
        self.stack_pop_any = stack.pop_any
        self.stack_pop1_int = stack.pop1_int
        self.stack_pop1_bytes = stack.pop1_bytes
        self.stack_pop1_any = stack.pop1_any
        self.stack_push_int = stack.push_int
        self.stack_push_bytes = stack.push_bytes

    @property
    def is_origin_computation(self) -> bool:
        """Whether this is the frame that the transaction itself started."""
        return bool(self.msg.depth == 0)

    @classmethod
    def opcode_table(cls) -> OpcodeTable:
        """Return this very class's opcodes, prepared for the loop."""
        table = cls.__dict__.get("_opcode_table")
        if table is None:
            table = cls._opcode_table = make_opcode_table(cls.opcodes)
        return table

    @classmethod
    def apply_message(
        cls,
        state: Any,
        message: Any,
        transaction_context: Any,
        parent_computation: Any = None,
    ) -> Any:
        """Move the value and run the code; undo both when it fails.

        The caller has checked the balance and the depth.
        """
        snapshot = state.snapshot()
        value = message.value
        if value and message.should_transfer_value:
            sender, receiver = message.sender, message.storage_address
            state.set_balance(sender, state.get_balance(sender) - value)
            state.set_balance(receiver, state.get_balance(receiver) + value)
        state.touch_account(message.storage_address)
        computation = cls.apply_computation(
            state, message, transaction_context, parent_computation
        )
        if computation._error is None:
            state.commit(snapshot)
        else:
            state.revert(snapshot)
        return computation

    @classmethod
    def apply_computation(
        cls,
        state: Any,
        message: Any,
        transaction_context: Any,
        parent_computation: Any = None,
    ) -> Any:
        """Run a precompiled contract, or the code; an error ends up in the result."""
        computation: Any = cls(state, message, transaction_context)
        if parent_computation is not None:
            computation.contracts_created = parent_computation.contracts_created
        if message.is_create:
            computation.contracts_created.add(message.storage_address)
        precompile = computation.precompiles.get(message.code_address)
        try:
            if precompile is None:
                cls.run_code(computation, cls.opcode_table())
            elif not message.is_delegation:
                precompile(computation)
        except VMError as error:
            computation._fail(error)
        return computation

    def apply_child_computation(self, child_msg: Any) -> Any:
        """Run a call or a creation; what it worked with goes, what it did stays.

        A transaction may make hundreds of thousands of calls, each with a megabyte of
        input.
        """
        child = super().apply_child_computation(child_msg)  # type: ignore[misc]
        child.let_go()
        return child

    def let_go(self) -> None:
        """Free what nobody needs when the frame is over."""
        members = self.__dict__
        for name in _WORKING_MEMBERS:
            del members[name]
        self.msg.data = self.msg.code = self.return_data = b""

    def _fail(self, error: VMError) -> None:
        self._error = error
        if error.burns_gas:
            self._gas_meter.gas_remaining = 0
        if error.erases_return_data:
            self.return_data = b""

    def extend_memory(self, start_position: int, size: int) -> None:
        """Pay for, and make, memory up to the end of a range; none for size 0."""
        if not size:
            return
        memory = self._memory
        end, before = start_position + size, len(memory._bytes)
        if end <= before:
            return
        after = (end + 31) & ~31
        self.consume_gas(memory_gas(after) - memory_gas(before), "Expanding memory")
        memory.extend(start_position, size)

    # What remains of the frame and those below it. py-evm collects, and sorts, anew at
    # each depth, which a contract can make slow.

    def _kept_frames(self) -> Iterator[Any]:
        """Yield the frames whose effects stand: neither they nor an ancestor failed."""
        frames = [self]
        while frames:
            frame = frames.pop()
            if frame._error is None:
                yield frame
                frames.extend(frame.children)

    def add_log_entry(
        self, account: bytes, topics: tuple[int, ...], data: bytes
    ) -> None:
        """Log; the counter keeps the order in which a transaction's frames did."""
        counter = self.transaction_context.get_next_log_counter()
        words = tuple([topic.to_bytes(32, "big") for topic in topics])
        self._log_entries.append((counter, account, words, data))

    def get_raw_log_entries(self) -> tuple[Any, ...]:
        """Return (counter, address, topics, data) of the logs that stand, in order.

        Topics are 32 bytes each; py-evm has numbers.
        """
        if not self.children:
            return tuple(self._log_entries) if self._error is None else ()
        entries = (frame._log_entries for frame in self._kept_frames())
        return tuple(sorted(chain.from_iterable(entries), key=itemgetter(0)))

    def get_accounts_for_deletion(self) -> list[bytes]:
        """Return the accounts that destroyed themselves."""
        accounts = (frame.accounts_to_delete for frame in self._kept_frames())
        return list(dict.fromkeys(chain.from_iterable(accounts)))

    def get_gas_refund(self) -> int:
        """Return the refund so far; an authorisation's stays when the call fails."""
        refunds = (frame._gas_meter.gas_refunded for frame in self._kept_frames())
        return int(self.msg.refund + sum(refunds))


class HomesteadFrame(Frame):
    """Creation that fails when the code can't be paid for (EIP-2)."""

    @classmethod
    def apply_create_message(
        cls,
        state: Any,
        message: Any,
        transaction_context: Any,
        parent_computation: Any = None,
    ) -> Any:
        """Run init code and store what it returns as the new contract's code."""
        snapshot = state.snapshot()
        cls._prepare_account(state, message)
        computation = cls.apply_message(
            state, message, transaction_context, parent_computation
        )
        code = computation.output
        if code and not computation.is_error:
            try:
                cls._check_code(code)
                computation.consume_gas(len(code) * CODE_DEPOSIT_GAS, "Code deposit")
            except VMError as error:
                computation._error = error
            else:
                state.set_code(message.storage_address, code)
        if computation.is_error:
            state.revert(snapshot)
        else:
            state.commit(snapshot)
        return computation

    @classmethod
    def _prepare_account(cls, state: Any, message: Any) -> None:
        """Change the account before its init code runs."""

    @classmethod
    def _check_code(cls, code: bytes) -> None:
        """Raise a VMError when a contract can't have such code."""


class SpuriousDragonFrame(HomesteadFrame):
    """A new contract starts with nonce 1 (EIP-161), and its code is limited."""

    validate_contract_code: Any

    @classmethod
    def _prepare_account(cls, state: Any, message: Any) -> None:
        state.increment_nonce(message.storage_address)

    @classmethod
    def _check_code(cls, code: bytes) -> None:
        cls.validate_contract_code(code)


def _without_warning(opcode: Any) -> Any:
    """Return what is behind py-evm's deprecation warning on SELFDESTRUCT."""
    return getattr(opcode, "__wrapped__", opcode)


def computation_class(base: type[Any], **attributes: Any) -> type[Any]:
    """Return py-evm's Computation class of a fork with our parts put in its place."""
    mixin: type[Frame] = Frame
    if issubclass(base, SpuriousDragonComputation):
        mixin = SpuriousDragonFrame
    elif issubclass(base, HomesteadComputation):
        mixin = HomesteadFrame
    opcodes = attributes.pop("opcodes", base.opcodes)
    return type(
        base.__name__,
        (mixin, base),
        {
            "opcodes": {
                number: limit_init_code(_without_warning(opcode))
                for number, opcode in opcodes.items()
            },
            **attributes,
        },
    )
