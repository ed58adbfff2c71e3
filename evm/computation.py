"""py-evm's Computation (one call frame), with lower overhead and corrections.

Differences from py-evm 0.12.1b1:

- The outermost frame is the one of depth 0. py-evm treats any frame whose sender is the
  transaction's as the outermost one. If a sender that delegates to code creates a
  contract, py-evm therefore charges init code twice.
- All frames of a transaction share the set of contracts that it has created. Whether
  SELFDESTRUCT removes an account depends on this set (EIP-6780).
- The init code of a creation transaction is charged in its intrinsic gas, not here.
- A frame is freed when its call ends. Its effects (logs, refund, touched and destroyed
  accounts) are in the transaction's `Effects`. py-evm keeps all frames until the end.
- No text is formatted for debug logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eth.exceptions import VMError
from eth.vm.forks.homestead.computation import HomesteadComputation
from eth.vm.forks.spurious_dragon.computation import SpuriousDragonComputation

from evm.code import Code
from evm.effects import RIPEMD160, LogEntry
from evm.frame_errors import ShortOfGas, ShortOfMemoryGas
from evm.gas import CODE_DEPOSIT_GAS, memory_gas
from evm.interpreter import OpcodeTable, make_opcode_table, run
from evm.message import Message
from evm.priced_opcodes import priced_opcodes
from evm.stack import StackMethods

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evm.gas_table import GasTable


class Frame(StackMethods):
    """Mixin that goes before a py-evm Computation of any fork.

    stack, memory: the top of the stack is its last item; the memory's size is a
        multiple of 32 bytes.
    gas_remaining: the interpreter's loop has a copy while it runs.
    """

    opcodes: dict[int, Any]
    gas_table: GasTable
    """The fork's prices."""
    _precompiles: dict[bytes, Any]
    return_data: bytes
    apply_create_message: Any
    _error: VMError | None = None
    output: bytes = b""
    _opcode_table: OpcodeTable
    run_code = staticmethod(run)
    """The interpreter's loop. The stepping tracers replace it."""

    def __init__(self, state: Any, message: Any, transaction_context: Any) -> None:
        self.state = state
        self.msg = message
        self.transaction_context = transaction_context
        self.code = Code(message.code)
        self.stack = []
        self.memory = bytearray()
        self.gas_remaining: int = message.gas

    @property
    def is_origin_computation(self) -> bool:
        """Whether this is the transaction's outermost frame."""
        return bool(self.msg.depth == 0)

    @classmethod
    def opcode_table(cls) -> OpcodeTable:
        """Return the opcodes of this class, prepared for the interpreter loop."""
        table = cls.__dict__.get("_opcode_table")
        if table is None:
            table = cls._opcode_table = make_opcode_table(cls.opcodes)
        return table

    @classmethod
    def with_precompiles(cls, precompiles: Mapping[bytes, Any]) -> type[Any]:
        """Return a subclass with other precompiled contracts.

        precompiles: by address, see `evm.precompiles.tables`.
        """
        table = cls.opcode_table()

        class Changed(cls):  # type: ignore[misc, valid-type]
            """A call frame with its own precompiled contracts."""

            _precompiles = dict(precompiles)

            @classmethod
            def opcode_table(cls) -> OpcodeTable:
                """Return the table of the class with the usual contracts."""
                return table

        return Changed

    # Gas

    def consume_gas(self, amount: int, reason: str) -> None:
        """Charge gas. Raises: OutOfGas if the frame has less gas left."""
        remaining = self.gas_remaining - amount
        if remaining < 0:
            raise ShortOfGas(amount, reason)
        self.gas_remaining = remaining

    def return_gas(self, amount: int) -> None:
        """Add the unused gas of a call."""
        self.gas_remaining += amount

    def refund_gas(self, amount: int) -> None:
        """Add to the refund at the end of the transaction; the amount may be negative."""
        self.transaction_context.effects.refund += amount

    def get_gas_remaining(self) -> int:
        """Return the gas that the caller gets back."""
        error = self._error
        return 0 if error is not None and error.burns_gas else self.gas_remaining

    def get_gas_used(self) -> int:
        """Return the gas that the frame has used, all of it after most errors."""
        used: int = self.msg.gas - self.get_gas_remaining()
        return max(0, used)

    # Calls

    @classmethod
    def apply_message(
        cls,
        state: Any,
        message: Any,
        transaction_context: Any,
        parent_computation: Any = None,
    ) -> Any:
        """Transfer the value and run the code. Revert both if the code fails.

        The caller has checked the balance and the depth.
        """
        snapshot = state.snapshot()
        effects = transaction_context.effects
        checkpoint = effects.checkpoint()
        value, address = message.value, message.storage_address
        if value and message.should_transfer_value:
            sender = message.sender
            state.set_balance(sender, state.get_balance(sender) - value)
            state.set_balance(address, state.get_balance(address) + value)
        state.touch_account(address)
        if message.is_create:
            effects.created.add(address)
        elif not value or address != RIPEMD160:
            effects.touched.append(address)
        computation: Any = cls(state, message, transaction_context)
        computation.execute()
        if computation._error is None:
            state.commit(snapshot)
        else:
            state.revert(snapshot)
            effects.undo(checkpoint)
        return computation

    def execute(self) -> None:
        """Run a precompiled contract, or the code. `_error` is set if it fails."""
        precompile = self._precompiles.get(self.msg.code_address)
        try:
            if precompile is not None:
                precompile(self)
            elif self.msg.code:
                self.run_code(self, self.opcode_table())
        except VMError as error:
            self.fail(error)

    def fail(self, error: VMError) -> None:
        """End the frame with an error."""
        # A traceback refers to the frame. The cycle would delay freeing the frame until
        # the next garbage collection.
        error.__context__ = None
        self._error = error.with_traceback(None)
        if error.burns_gas:
            self.gas_remaining = 0
        if error.erases_return_data:
            self.return_data = self.output = b""

    def prepare_child_message(
        self, gas: int, to: bytes, value: int, data: Any, code: bytes, **named: Any
    ) -> Message:
        """Return the message of a creation, or of a call before Berlin."""
        named.setdefault("sender", self.msg.storage_address)
        named.pop("is_delegation", None)  # py-evm's False before Prague
        return Message(
            gas=gas,
            to=to,
            value=value,
            data=data,
            code=code,
            depth=self.msg.depth + 1,
            **named,
        )

    def apply_child_computation(self, message: Any) -> Any:
        """Run a call or a creation, and return its frame."""
        context = self.transaction_context
        if message.is_create:
            child = self.apply_create_message(self.state, message, context)
            error = child._error
            has_output = error is not None and not error.erases_return_data
            self.return_data = child.output if has_output else b""
        else:
            child = self.apply_message(self.state, message, context)
            self.return_data = child.output
        return child

    # Memory

    def extend_memory(self, start_position: int, size: int) -> None:
        """Expand memory to the end of a range, and charge for it.

        Size 0 has no effect.
        """
        if not size:
            return
        memory = self.memory
        end, before = start_position + size, len(memory)
        if end <= before:
            return
        after = (end + 31) & ~31
        price = memory_gas(after) - memory_gas(before)
        remaining = self.gas_remaining - price
        if remaining < 0:
            raise ShortOfMemoryGas(price, "memory")
        self.gas_remaining = remaining
        try:
            memory.extend(bytes(after - before))
        except BufferError:
            # A view of the memory still exists, such as the input of an earlier call.
            self.memory = memory + bytes(after - before)

    def memory_read_bytes(self, start_position: int, size: int) -> bytes:
        """Return a copy of a range of the memory."""
        return bytes(self.memory[start_position : start_position + size])

    def memory_write(self, start_position: int, size: int, value: bytes) -> None:
        """Write `size` bytes into the memory, which must be large enough already."""
        self.memory[start_position : start_position + size] = value

    # Effects

    def add_log_entry(
        self, account: bytes, topics: tuple[int, ...], data: bytes
    ) -> None:
        """Add a log. topics: integers, as in py-evm."""
        words = tuple([topic.to_bytes(32, "big") for topic in topics])
        self.transaction_context.effects.logs.append((account, words, data))

    def get_log_entries(self) -> tuple[LogEntry, ...]:
        """Return the transaction's logs, without those of failed frames."""
        return tuple(self.transaction_context.effects.logs)

    def get_accounts_for_deletion(self) -> list[bytes]:
        """Return the accounts destroyed by the transaction, without duplicates."""
        return list(dict.fromkeys(self.transaction_context.effects.destroyed))

    def get_gas_refund(self) -> int:
        """Return the present refund.

        Refunds for authorizations are kept if the call fails.
        """
        return int(self.msg.refund + self.transaction_context.effects.refund)

    @property
    def contracts_created(self) -> set[bytes]:
        """The contracts that the transaction has created so far."""
        created: set[bytes] = self.transaction_context.effects.created
        return created

    @property
    def beneficiaries(self) -> list[bytes]:
        """The list to which py-evm adds the beneficiary of a SELFDESTRUCT."""
        touched: list[bytes] = self.transaction_context.effects.touched
        return touched

    def register_account_for_deletion(self, beneficiary: bytes) -> None:
        """Record the self-destruction of the executing contract."""
        self.transaction_context.effects.destroyed.append(self.msg.storage_address)
        self.beneficiaries.append(beneficiary)


class HomesteadFrame(Frame):
    """A frame whose creation fails if it can't pay for the code (EIP-2)."""

    @classmethod
    def apply_create_message(
        cls,
        state: Any,
        message: Any,
        transaction_context: Any,
        parent_computation: Any = None,
    ) -> Any:
        """Run init code, and store its return data as the new contract's code."""
        snapshot = state.snapshot()
        effects = transaction_context.effects
        checkpoint = effects.checkpoint()
        cls._prepare_account(state, message)
        computation = cls.apply_message(state, message, transaction_context)
        code = computation.output
        if code and computation._error is None:
            try:
                cls._check_code(code)
                computation.consume_gas(len(code) * CODE_DEPOSIT_GAS, "Code deposit")
            except VMError as error:
                computation._error = error.with_traceback(None)
            else:
                state.set_code(message.storage_address, code)
        if computation._error is None:
            state.commit(snapshot)
        else:
            state.revert(snapshot)
            effects.undo(checkpoint)
        return computation

    @classmethod
    def _prepare_account(cls, state: Any, message: Any) -> None:
        """Change the account before its init code runs."""

    @classmethod
    def _check_code(cls, code: bytes) -> None:
        """Raise a VMError if the code is not allowed for a contract."""


class SpuriousDragonFrame(HomesteadFrame):
    """A frame that creates contracts with nonce 1 (EIP-161) and limits their code size."""

    validate_contract_code: Any

    @classmethod
    def _prepare_account(cls, state: Any, message: Any) -> None:
        state.increment_nonce(message.storage_address)

    @classmethod
    def _check_code(cls, code: bytes) -> None:
        cls.validate_contract_code(code)


def computation_class(
    base: Any, gas_table: GasTable, precompiles: Any, opcodes: dict[int, Any]
) -> type[Any]:
    """Return the Computation class of a fork.

    base: py-evm's class of the fork. precompiles: see `evm.precompiles.tables`.
    opcodes: py-evm's, or those of a fork that py-evm does not have.
    """
    mixin: Any = Frame
    if issubclass(base, SpuriousDragonComputation):
        mixin = SpuriousDragonFrame
    elif issubclass(base, HomesteadComputation):
        mixin = HomesteadFrame

    class ForkFrame(mixin, base):  # type: ignore[misc]  # of a fork
        """A call frame with the rules of one fork."""

    ForkFrame.opcodes = priced_opcodes(opcodes, gas_table)
    ForkFrame.gas_table = gas_table
    ForkFrame._precompiles = precompiles
    return ForkFrame
