"""The execution of a message: a call or a creation.

Sources: Yellow Paper, 7 and 8; go-ethereum, core/vm/evm.go
"""

from __future__ import annotations

import sys

from evm.effects import RIPEMD160
from evm.frame import Frame
from evm.frame_errors import (
    UNPAID_CODE,
    CodeTooLong,
    FrameError,
    OutOfGas,
    RejectedCode,
)
from evm.interpreter import run
from evm.message import Message
from evm.opcodes import MAX_DEPTH
from evm.rules.prices import word_count

RECURSION_LIMIT = 12 * MAX_DEPTH
"""Python frames: a call of the EVM takes up to ten."""
sys.setrecursionlimit(max(RECURSION_LIMIT, sys.getrecursionlimit()))


class MessageCall(Frame):
    """A frame that executes its message."""

    def run(self) -> None:
        """Execute the message, a call or a creation. `error` is set if it fails.

        The caller has checked the balance, the depth and the new contract's address.
        """
        if self.message.is_create:
            self._create()
        else:
            self._call()

    def _call(self) -> None:
        """Transfer the value and run the code. Undo both if the code fails."""
        state, message, effects = self.state, self.message, self.transaction.effects
        world, value, address = state.world, message.value, message.storage_address
        snapshot, checkpoint = world.record(), effects.checkpoint()
        if value and message.transfers_value:
            sender = message.sender
            world.set_balance(sender, world.get_balance(sender) - value)
            world.set_balance(address, world.get_balance(address) + value)
            self.log_transfer(sender, address, value)
        world.touch_account(address)
        if message.is_create:
            effects.created.add(address)
        elif not value or address != RIPEMD160:
            effects.touched.append(address)
        try:
            precompile = state.precompiles.get(message.code_address)
            if precompile is not None:
                self.charge(precompile.price(message.data))
                self.output = precompile.function(message.data)
            elif self.code:
                self.run_code()
        except FrameError as error:
            self.fail(error)
        if self.error is not None:
            world.discard(snapshot)
            effects.undo(checkpoint)

    def _create(self) -> None:
        """Run init code, and store what it returns as the new contract's code."""
        world, effects = self.state.world, self.transaction.effects
        snapshot, checkpoint = world.record(), effects.checkpoint()
        if self.fork.clears_empty_accounts:
            # Contracts begin with nonce 1: https://eips.ethereum.org/EIPS/eip-161
            world.increment_nonce(self.message.storage_address)
        self._call()
        if self.error is None and self.output:
            try:
                self._deposit_code(self.output)
            except FrameError as error:
                self.refused_code = self.output
                self.fail(error)
        if self.error is not None:
            world.discard(snapshot)
            effects.undo(checkpoint)

    def _deposit_code(self, code: bytes) -> None:
        """Charge for a new contract's code, and store it. Raises: FrameError."""
        fork, prices, size = self.fork, self.prices, len(code)
        if fork.rejects_0xef_code and code[0] == 0xEF:
            # https://eips.ethereum.org/EIPS/eip-3541
            raise RejectedCode("invalid code: must not begin with 0xef")
        is_too_long = fork.max_code_size is not None and size > fork.max_code_size
        if is_too_long and prices.state is not None:
            # Code that is not stored costs no state gas (EIP-8037).
            raise CodeTooLong(size, fork.max_code_size)
        try:
            self.charge(prices.code_byte * size + prices.code_word * word_count(size))
            if prices.state is not None:
                self.charge_state(prices.state.code_byte * size)
        except OutOfGas:
            if fork.must_pay_for_code:
                raise RejectedCode(UNPAID_CODE) from None
            self.refused_code, self.output = code, b""
            return
        if is_too_long:
            raise CodeTooLong(size, fork.max_code_size)
        self.state.world.set_code(self.message.storage_address, code)

    def run_code(self) -> None:
        """Run the code. Raises: FrameError. Watched frames override it."""
        run(self)

    def run_child(self, name: str, message: Message) -> Frame:
        """Run a call or a creation, and return its frame. name: of the instruction."""
        child = type(self)(self.state, message, self.transaction)
        child.reservoir = self.reservoir
        child.run()
        return child
