"""The Python functions behind runtime/model.js: access to the execution's data.

Bytes are passed as hexadecimal digits. Numbers beyond 31 bits are passed as floats, or
as hexadecimal text if they may exceed 53 bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from eth_typing import Address

from evm.addresses import contract_address, salted_contract_address
from evm.opcodes import OPCODE_NAMES
from evm.tracers.frames import CREATIONS
from evm.tracers.javascript.engine import MAX_INTEGER
from evm.transactions import MAX_NONCE

if TYPE_CHECKING:
    from evm.state import State
    from evm.tracers.frames import CallFrame
    from evm.tracers.javascript.engine import Host
    from evm.tracers.steps import Step, TracedTransaction


class BadArgument(Exception):
    """Raised when a tracer passes an invalid argument, which makes the tracer fail."""


def number(value: int) -> int | float:
    """Convert an integer to a JavaScript number, which is exact up to 2**53."""
    return value if value <= MAX_INTEGER else float(value)


def _exact(value: int) -> int | str:
    return value if value <= MAX_INTEGER else hex(value)


def _bytes(hexadecimal: str) -> bytes:
    try:
        return bytes.fromhex(hexadecimal)
    except (TypeError, ValueError) as error:
        raise BadArgument from error


def _address(hexadecimal: str) -> Address:
    return Address(_bytes(hexadecimal))


class HostFunctions:
    """The functions, with the data that they read. The caller sets it before each hook."""

    transaction: TracedTransaction | None = None
    """None during the program's setup, which has access to neither `log` nor `db`."""
    step: Step
    frame: CallFrame
    """The frame that begins or ends."""
    top: CallFrame | None = None
    """The outermost frame after its end, otherwise None."""
    gas_used = 0

    def __init__(self) -> None:
        """Start without data. The tracer sets the attributes."""
        self.failure: BaseException | None = None
        """The exception of one of the functions, which JavaScript does not receive."""

    def functions(self) -> dict[str, Host]:
        """Return all functions by their names in JavaScript."""
        offers: list[Callable[..., Any]] = [
            *(self.opcode_names, self.stack_length, self.stack_item),
            *(self.memory_length, self.memory, self.caller, self.address),
            *(self.value, self.input, self.error),
            *(self.balance, self.nonce, self.code, self.storage, self.exists),
            *(self.is_precompiled, self.created, self.created_with_salt, self.context),
            *(self.frame_type, self.frame_from, self.frame_to, self.frame_input),
            *(self.frame_gas, self.frame_value, self.frame_gas_used),
            *(self.frame_output, self.frame_error),
        ]
        return {offer.__name__: self._guarded(offer) for offer in offers}

    def _guarded(self, function: Callable[..., Any]) -> Host:
        """Store a function's exception and return null. quickjs loses exceptions."""

        @wraps(function)
        def guarded(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except BadArgument:
                return None
            except BaseException as error:
                if self.failure is None:
                    self.failure = error
                return None

        return guarded

    @staticmethod
    def opcode_names() -> str:
        """Return the names of all 256 opcodes as JSON."""
        return json.dumps(OPCODE_NAMES)

    # log

    def stack_length(self) -> int:
        """Return the number of words on the stack."""
        return len(self.step.frame.stack)

    def stack_item(self, index: int) -> int | str:
        """Return a word of the stack, which must exist. 0 is the top."""
        return _exact(self.step.frame.stack[-1 - index])

    def memory_length(self) -> int | float:
        """Return the size of the memory in bytes."""
        return number(len(self.step.frame.memory))

    def memory(self, begin: float, end: float) -> str:
        """Return the memory from `begin` to `end`, cut at the end of the memory."""
        return self.step.frame.memory[int(begin) : int(end)].hex()

    def caller(self) -> str:
        """Return the address of the executing code's caller in hexadecimal digits."""
        return bytes.hex(self.step.frame.message.sender)

    def address(self) -> str:
        """Return the address of the executing contract, whose storage the code uses."""
        return bytes.hex(self.step.frame.message.storage_address)

    def value(self) -> int | str:
        """Return the call's value in wei, as CALLVALUE does."""
        return _exact(self.step.frame.message.value)

    def input(self) -> str:
        """Return the input of the executing call in hexadecimal digits."""
        return bytes(self.step.frame.message.data).hex()

    def error(self) -> str:
        """Return the error of the current instruction, "" if it does not fail."""
        return self.step.error or ""

    # db

    @property
    def _state(self) -> State:
        if self.transaction is None:
            raise BadArgument
        return self.transaction.state

    def balance(self, address: str) -> int | str:
        """Return an account's balance in wei."""
        return _exact(self._state.get_balance(_address(address)))

    def nonce(self, address: str) -> int | float:
        """Return an account's nonce."""
        return number(self._state.get_nonce(_address(address)))

    def code(self, address: str) -> str:
        """Return an account's code in hexadecimal digits."""
        return self._state.get_code(_address(address)).hex()

    def storage(self, address: str, slot: str) -> str:
        """Return the present value of an account's slot as 64 hexadecimal digits."""
        number = int.from_bytes(_bytes(slot), "big")
        return f"{self._state.get_storage(_address(address), number):064x}"

    def exists(self, address: str) -> bool:
        """Return whether the account exists.

        From EIP-161 on, return whether it is not empty, because empty accounts are
        deleted at the end of the transaction.
        """
        state, account = self._state, _address(address)
        if state.fork.clears_empty_accounts:
            return not state.world.account_is_empty(account)
        return state.world.account_exists(account)

    # Addresses

    def is_precompiled(self, address: str) -> bool:
        """Return whether the fork has a precompiled contract at an address."""
        transaction = self.transaction
        return transaction is not None and _bytes(address) in transaction.precompiles

    @staticmethod
    def created(creator: str, nonce: float) -> str:
        """Return the address of a contract made by CREATE."""
        value = int(nonce) & MAX_NONCE
        return contract_address(_bytes(creator), value).hex()

    @staticmethod
    def created_with_salt(creator: str, salt: str, init_code: str) -> str:
        """Return the address of a contract made by CREATE2."""
        number = int.from_bytes(_bytes(salt), "big")
        return salted_contract_address(_bytes(creator), number, _bytes(init_code)).hex()

    # Frames

    def frame_type(self) -> str:
        """Return the type of the call frame, such as CALL or CREATE."""
        return self.frame.type

    def frame_from(self) -> str:
        """Return the address of the caller."""
        return self.frame.sender.hex()

    def frame_to(self) -> str:
        """Return the address of the called or created account."""
        return (self.frame.to or bytes(20)).hex()

    def frame_input(self) -> str:
        """Return the frame's input: call data or init code."""
        return self.frame.input.hex()

    def frame_gas(self) -> int | float:
        """Return the gas that the call frame received."""
        return number(self.frame.gas)

    def frame_value(self) -> int | str:
        """Return the value of the call in wei, "" if its type has no value."""
        return "" if self.frame.value is None else _exact(self.frame.value)

    def frame_gas_used(self) -> int | float:
        """Return the gas that the call used."""
        return number(self.frame.gas_used)

    def frame_output(self) -> str:
        """Return the call's return data."""
        return self.frame.output.hex()

    def frame_error(self) -> str:
        """Return the error of the call, "" if it succeeded."""
        return self.frame.error or ""

    # ctx

    def context(self) -> str:
        """Return the `ctx` argument of `result` as JSON, its values grouped by type."""
        transaction, top = self.transaction, self.top
        if transaction is None or top is None:
            raise RuntimeError("the transaction is not over")
        place: dict[str, str] = {}
        index: dict[str, int] = {}
        if any(transaction.block_hash):  # zero for a call that is in no block
            place["blockHash"] = transaction.block_hash.hex()
            if any(transaction.hash):
                place["txHash"] = transaction.hash.hex()
                index["txIndex"] = transaction.index
        return json.dumps(
            {
                "texts": {
                    "type": "CREATE" if top.type in CREATIONS else "CALL",
                    **({} if top.error is None else {"error": top.error}),
                },
                "numbers": {
                    "block": transaction.block_number,
                    "gas": transaction.gas,
                    "gasUsed": self.gas_used,
                    **index,
                },
                "bigs": {
                    # In geth, `gasPrice` is the effective tip.
                    "gasPrice": hex(transaction.gas_tip),
                    "value": hex(transaction.value),
                },
                "buffers": {
                    "from": transaction.sender.hex(),
                    "to": (top.to or bytes(20)).hex(),
                    "input": transaction.input.hex(),
                    "output": top.output.hex(),
                    "coinbase": transaction.coinbase.hex(),
                    **place,
                },
            }
        )
