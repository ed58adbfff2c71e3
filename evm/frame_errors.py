"""Errors that end a call frame and undo its changes, with geth's texts.

Source: go-ethereum, core/vm/errors.go
"""

from __future__ import annotations

REVERTED = "execution reverted"
OUT_OF_GAS = "out of gas"
UNPAID_CODE = "contract creation code storage out of gas"
"""Texts that tracers treat specially."""


class FrameError(Exception):
    """Raised when a frame fails. The message is geth's."""

    burns_gas = True
    """Whether the frame's remaining gas is lost."""
    keeps_output = False
    """Whether the caller receives the frame's output."""


class Revert(FrameError):
    """Raised by REVERT, which undoes the frame's changes and returns unused gas."""

    burns_gas = False
    keeps_output = True

    def __init__(self) -> None:
        super().__init__(REVERTED)


class OutOfGas(FrameError):
    """Raised when an instruction or a precompiled contract can't be paid for."""

    def __init__(self, reason: str = "") -> None:
        """reason: what geth names if it stops while it computes the price."""
        super().__init__(f"{OUT_OF_GAS}: {reason}" if reason else OUT_OF_GAS)


class GasOverflow(FrameError):
    """Raised for a memory range that exceeds 64 bits."""

    def __init__(self) -> None:
        super().__init__("gas uint64 overflow")


class StackUnderflow(FrameError):
    """Raised when the stack has too few items for an instruction."""

    def __init__(self, size: int, taken: int) -> None:
        """size: of the stack. taken: items that the instruction takes."""
        super().__init__(f"stack underflow ({size} <=> {taken})")


class StackOverflow(FrameError):
    """Raised when an instruction would put too many items on the stack."""

    def __init__(self, size: int, maximum: int) -> None:
        """size: of the stack. maximum: the largest size before the instruction."""
        super().__init__(f"stack limit reached {size} ({maximum})")


class InvalidOpcode(FrameError):
    """Raised for a byte of code that is no instruction of the fork."""

    def __init__(self, name: str) -> None:
        super().__init__(f"invalid opcode: {name}")


class InvalidJump(FrameError):
    """Raised for a jump to a position that is no JUMPDEST, or is data of a PUSH."""

    def __init__(self) -> None:
        super().__init__("invalid jump destination")


class OutOfBoundsRead(FrameError):
    """Raised when RETURNDATACOPY reads beyond the end of the return data (EIP-211)."""

    def __init__(self) -> None:
        super().__init__("return data out of bounds")


class WriteProtection(FrameError):
    """Raised when an instruction writes in a static call (EIP-214)."""

    def __init__(self) -> None:
        super().__init__("write protection")


class AddressCollision(FrameError):
    """Raised when a transaction's creation finds its address occupied (EIP-684)."""

    def __init__(self) -> None:
        super().__init__("contract address collision")


class NonceOverflow(FrameError):
    """Raised when a creator's nonce can't be incremented. The gas is returned."""

    burns_gas = False

    def __init__(self) -> None:
        super().__init__("nonce uint64 overflow")


class RejectedCode(FrameError):
    """Raised when the code that a creation returned is not allowed or not paid for."""


class CodeTooLong(RejectedCode):
    """Raised when the code that a creation returned exceeds the limit (EIP-170)."""

    def __init__(self, size: int, limit: int | None) -> None:
        super().__init__(f"max code size exceeded: code size {size} limit {limit}")
