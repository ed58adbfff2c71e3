"""What JavaScript can ask about the execution: the functions behind runtime/model.js.

Bytes go over as hexadecimal digits, numbers beyond 31 bits as floats or, where they
may be beyond 53 bits, as hexadecimal text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from eth._utils.address import (
    generate_contract_address,
    generate_safe_contract_address,
)

from nodeapi.tracers.frames import CREATIONS
from nodeapi.tracers.javascript.engine import MAX_INTEGER
from nodeapi.tracers.opcodes import OPCODE_NAMES

if TYPE_CHECKING:
    from nodeapi.tracers.frames import CallFrame
    from nodeapi.tracers.javascript.engine import Host
    from nodeapi.tracers.steps import Step, TracedTransaction

MAX_NONCE = 2**64 - 1


class BadArgument(Exception):
    """A program's argument that even a program can't mean: it fails, and not we."""


def number(value: int) -> int | float:
    """Return a number as JavaScript takes it, exact up to 2**53 as all its numbers."""
    return value if value <= MAX_INTEGER else float(value)


def _exact(value: int) -> int | str:
    return value if value <= MAX_INTEGER else hex(value)


def _bytes(hexadecimal: str) -> bytes:
    try:
        return bytes.fromhex(hexadecimal)
    except (TypeError, ValueError) as error:
        raise BadArgument from error


class HostFunctions:
    """The functions, and what they look at, which changes with each hook's call."""

    transaction: TracedTransaction | None = None
    """None while the program is set up, when it sees neither `log` nor `db`."""
    step: Step
    frame: CallFrame
    """The one that begins or ends."""
    top: CallFrame | None = None
    """The outermost one, once it is over."""
    gas_used = 0

    def __init__(self) -> None:
        """Know nothing yet; the attributes are set from outside."""
        self.failure: BaseException | None = None
        """What one of the functions raised: it was kept from JavaScript."""

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
        """Keep what a function raises, and give null: quickjs loses exceptions."""

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
        """Return how many words are on the stack."""
        return len(self.step.frame._stack.values)

    def stack_item(self, index: int) -> int | str:
        """Return a word of the stack; 0 is the top. It must be there."""
        return _exact(self.step.frame._stack.values[-1 - index])

    def memory_length(self) -> int | float:
        """Return the size of the memory in bytes."""
        return number(len(self.step.frame._memory._bytes))

    def memory(self, begin: float, end: float) -> str:
        """Return a part of the memory, as much of it as there is."""
        part: bytearray = self.step.frame._memory._bytes[int(begin) : int(end)]
        return part.hex()

    def caller(self) -> str:
        """Return who called the running code."""
        return bytes.hex(self.step.frame.msg.sender)

    def address(self) -> str:
        """Return the account whose storage the running code has."""
        return bytes.hex(self.step.frame.msg.storage_address)

    def value(self) -> int | str:
        """Return the wei that CALLVALUE gives."""
        return _exact(self.step.frame.msg.value)

    def input(self) -> str:
        """Return the call's data."""
        return bytes(self.step.frame.msg.data).hex()

    def error(self) -> str:
        """Return why the instruction fails, empty when it does not."""
        return self.step.error or ""

    # db

    @property
    def _state(self) -> Any:
        if self.transaction is None:
            raise BadArgument
        return self.transaction.state

    def balance(self, address: str) -> int | str:
        """Return an account's wei."""
        return _exact(self._state.get_balance(_bytes(address)))

    def nonce(self, address: str) -> int | float:
        """Return an account's nonce."""
        return number(self._state.get_nonce(_bytes(address)))

    def code(self, address: str) -> str:
        """Return an account's code."""
        return bytes(self._state.get_code(_bytes(address))).hex()

    def storage(self, address: str, slot: str) -> str:
        """Return a word of an account's storage as it stands."""
        state = self._state
        value: int = state.get_storage(
            _bytes(address), int.from_bytes(_bytes(slot), "big")
        )
        return f"{value:064x}"

    def exists(self, address: str) -> bool:
        """Return whether the account is anything but empty."""
        return not self._state.account_is_empty(_bytes(address))

    # Addresses

    def is_precompiled(self, address: str) -> bool:
        """Return whether the fork has a precompiled contract there."""
        transaction = self.transaction
        return transaction is not None and _bytes(address) in transaction.precompiles

    @staticmethod
    def created(creator: str, nonce: float) -> str:
        """Return the address of what CREATE makes."""
        value = int(nonce) & MAX_NONCE
        address: bytes = generate_contract_address(_bytes(creator), value)
        return address.hex()

    @staticmethod
    def created_with_salt(creator: str, salt: str, init_code: str) -> str:
        """Return the address of what CREATE2 makes."""
        address: bytes = generate_safe_contract_address(
            _bytes(creator), int.from_bytes(_bytes(salt), "big"), _bytes(init_code)
        )
        return address.hex()

    # Frames

    def frame_type(self) -> str:
        """Return CALL and so on."""
        return self.frame.type

    def frame_from(self) -> str:
        """Return the account that makes the call."""
        return self.frame.sender.hex()

    def frame_to(self) -> str:
        """Return the account that is called, or comes into being."""
        return (self.frame.to or bytes(20)).hex()

    def frame_input(self) -> str:
        """Return call data or init code."""
        return self.frame.input.hex()

    def frame_gas(self) -> int | float:
        """Return the gas handed over."""
        return number(self.frame.gas)

    def frame_value(self) -> int | str:
        """Return the wei, an empty text when the call can't have any."""
        return "" if self.frame.value is None else _exact(self.frame.value)

    def frame_gas_used(self) -> int | float:
        """Return the gas that the call took."""
        return number(self.frame.gas_used)

    def frame_output(self) -> str:
        """Return what the call returned."""
        return self.frame.output.hex()

    def frame_error(self) -> str:
        """Return why the call failed, empty when it did not."""
        return self.frame.error or ""

    # ctx

    def context(self) -> str:
        """Return what `result` is told of the transaction, by kind of value, as JSON."""
        transaction, top = self.transaction, self.top
        if transaction is None or top is None:
            raise RuntimeError("the transaction is not over")
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
                    "txIndex": transaction.index,
                },
                "bigs": {
                    "gasPrice": hex(transaction.gas_price),
                    "value": hex(transaction.value),
                },
                "buffers": {
                    "from": transaction.sender.hex(),
                    "to": (top.to or bytes(20)).hex(),
                    "input": transaction.input.hex(),
                    "output": top.output.hex(),
                    "coinbase": transaction.coinbase.hex(),
                    "blockHash": transaction.block_hash.hex(),
                    "txHash": transaction.hash.hex(),
                },
                # For old tracers: geth has it no more.
                "hidden": {"intrinsicGas": transaction.intrinsic_gas},
            }
        )
