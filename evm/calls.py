"""CALL, CALLCODE, DELEGATECALL and STATICCALL from Berlin on, in one function.

They have the same effects as py-evm's classes, in the same order, but don't copy the
input. A call costs as little as 100 gas, and may have a megabyte of input.
"""

from __future__ import annotations

from typing import Any

from eth.constants import STACK_DEPTH_LIMIT
from eth.exceptions import WriteProtection
from eth.vm.forks.berlin.logic import (
    BaseCallEIP2929,
    CallCodeEIP2929,
    CallEIP2929,
    DelegateCallEIP2929,
    StaticCallEIP2929,
)
from eth.vm.forks.prague.logic import BaseCallEIP7702

from evm.delegations import delegate_of
from evm.frame_errors import (
    ShortOfAccountGas,
    ShortOfDelegateGas,
    ShortOfGas,
    ShortOfTransferGas,
)
from evm.gas import (
    CALL_STIPEND_GAS,
    COLD_ACCOUNT_GAS,
    NEW_ACCOUNT_GAS,
    VALUE_GAS,
    WARM_GAS,
)
from evm.message import Message
from evm.stack import ADDRESS_MASK


class Call:
    """CALL, CALLCODE, DELEGATECALL or STATICCALL, with the rules of a fork."""

    def __init__(self, opcode: BaseCallEIP2929) -> None:
        """Read the rules from py-evm's opcode."""
        self.mnemonic: str = opcode.mnemonic
        self._follows_delegations = isinstance(opcode, BaseCallEIP7702)
        self._is_call = isinstance(opcode, CallEIP2929)
        self._is_call_code = isinstance(opcode, CallCodeEIP2929)
        self._is_delegate_call = isinstance(opcode, DelegateCallEIP2929)
        self._is_static_call = isinstance(opcode, StaticCallEIP2929)
        self._has_value = self._is_call or self._is_call_code
        self._operands = 7 if self._has_value else 6

    def __call__(self, computation: Any) -> None:
        """Run the instruction. Raises: VMError if it fails."""
        frame, message = computation, computation.msg
        operands = frame.stack_pop_ints(self._operands)
        target = (operands[1] & ADDRESS_MASK).to_bytes(20, "big")
        start, size, output_start, output_size = operands[-4:]
        value = operands[2] if self._has_value else 0
        if value and self._is_call and message.is_static:
            raise WriteProtection("Cannot modify state while inside of a STATICCALL")
        if size:
            frame.extend_memory(start, size)
        if output_size:
            frame.extend_memory(output_start, output_size)
        code, delegate = self._load(frame, frame.state, target)
        gas = self._charge_transfer(frame, operands[0], value, target)
        storage = message.storage_address
        if message.depth >= STACK_DEPTH_LIMIT or (
            value and frame.state.get_balance(storage) < value
        ):
            self._refuse(frame, gas)
            return
        is_delegate_call = self._is_delegate_call
        child = frame.apply_child_computation(
            Message(
                gas,
                storage if is_delegate_call or self._is_call_code else target,
                message.sender if is_delegate_call else storage,
                message.value if is_delegate_call else value,
                memoryview(frame.memory)[start : start + size] if size else b"",
                code,
                message.depth + 1,
                None,
                target,
                self._has_value,
                message.is_static or self._is_static_call,
                delegate,
            )
        )
        self._conclude(frame, child, output_start, output_size)

    @staticmethod
    def _refuse(frame: Any, gas: int) -> None:
        """Fail a call beyond the depth limit or the balance, and return its gas."""
        frame.return_data = b""
        frame.return_gas(gas)
        frame.stack_push_int(0)

    def _charge_transfer(self, frame: Any, gas: int, value: int, target: bytes) -> int:
        """Charge the gas of a call. Return the gas that the called frame receives.

        gas: the operand.

        Raises: ShortOfTransferGas.
        """
        extra = VALUE_GAS if value else 0
        if value and self._is_call and frame.state.account_is_empty(target):
            extra += NEW_ACCOUNT_GAS
        remaining = frame.gas_remaining - extra
        if remaining < 0:
            raise ShortOfTransferGas(extra, self.mnemonic)
        gas = min(gas, remaining - remaining // 64)
        frame.gas_remaining = remaining - gas
        return gas + CALL_STIPEND_GAS if value else gas

    def _load(
        self, frame: Any, state: Any, target: bytes
    ) -> tuple[bytes, bytes | None]:
        """Charge the account access.

        Return the code to run, and the delegate if any.
        """
        paid = self._pay_for(frame, state, target, ShortOfAccountGas)
        code = state.get_code(target)
        if not code or not self._follows_delegations:
            return code, None
        delegate = delegate_of(code)
        if delegate is not None:
            frame.account_gas = paid
            frame.delegate_gas = self._pay_for(
                frame, state, delegate, ShortOfDelegateGas
            )
            code = state.get_code(delegate)
        return code, delegate

    def _pay_for(
        self, frame: Any, state: Any, address: bytes, error: type[ShortOfGas]
    ) -> int:
        """Charge the gas for reading an account's code, and return the amount.

        Raises: `error` if the frame has less gas.
        """
        gas = WARM_GAS
        if not state.is_address_warm(address):
            state.mark_address_warm(address)
            gas = COLD_ACCOUNT_GAS
        remaining = frame.gas_remaining - gas
        if remaining < 0:
            raise error(gas, self.mnemonic)
        frame.gas_remaining = remaining
        return gas

    @staticmethod
    def _conclude(frame: Any, child: Any, start: int, size: int) -> None:
        """Copy the output of a call into memory, and push whether the call succeeded."""
        error = child._error
        frame.stack.append(1 if error is None else 0)
        if size:
            output = child.output[:size]
            if output:
                frame.memory[start : start + len(output)] = output
        # After errors other than REVERT, no gas remains.
        frame.return_gas(child.gas_remaining)
