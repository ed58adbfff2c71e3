"""Errors of single instructions, more precise than py-evm's."""

from __future__ import annotations

from eth.exceptions import OutOfGas, VMError


class NonceOverflow(VMError):  # type: ignore[misc]  # py-evm has no types
    """Raised when a creator's nonce can't be incremented. The gas is returned."""

    burns_gas = False


class ShortOfGas(OutOfGas):  # type: ignore[misc]  # py-evm has no types
    """Raised when a part of an instruction's cost exceeds the remaining gas."""

    def __init__(self, amount: int, reason: str) -> None:
        """amount: gas of this part. reason: text for the message."""
        self.amount = amount
        self.reason = reason
        super().__init__(amount, reason)


class ShortOfMemoryGas(ShortOfGas):
    """Raised when a frame can't pay for more memory."""


class ShortOfAccountGas(ShortOfGas):
    """Raised when a call can't pay for reading the account that it names."""


class ShortOfDelegateGas(ShortOfGas):
    """Raised when a call can't pay for the access to the account's delegate."""


class ShortOfTransferGas(ShortOfGas):
    """Raised when a call can't pay for a transfer or for a new account."""


class OutOfConstantGas(OutOfGas):  # type: ignore[misc]
    """Raised when the remaining gas is below an instruction's constant gas.

    The instruction has had no effect. Its operands are still on the stack.
    """

    def __init__(self, gas: int) -> None:
        """gas: the frame's remaining gas."""
        self.gas = gas
        super().__init__(gas)
