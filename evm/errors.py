"""Errors of invalid blocks and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

    from eth_typing import Hash32

    from evm.headers import Header


class InvalidBlock(Exception):
    """Raised when a block breaks a rule of its fork.

    The message is one line: the block's number and hash, the field, and either the
    reason or both the expected and the present value.
    """

    def __init__(
        self,
        header: Header | None,
        field: str,
        expected: object = None,
        actual: object = None,
        *,
        reason: str = "",
    ) -> None:
        self.field = field
        self.expected = expected
        self.actual = actual
        self.reason = reason
        self.number: int | None = None
        self.hash: Hash32 | None = None
        super().__init__(field, expected, actual, reason)
        if header is not None:
            self.locate(header)

    def locate(self, header: Header) -> Self:
        """Set the block of an error that was raised without it, and return the error."""
        self.number, self.hash = header.number, header.hash
        return self

    def __str__(self) -> str:
        where = "block"
        if self.number is not None and self.hash is not None:
            where = f"block {self.number} (0x{self.hash.hex()})"
        return f"{where}: {self.summary}"

    @property
    def summary(self) -> str:
        """The field and the reason, without the block."""
        what = self.reason
        if not what:
            what = f"expected {_shown(self.expected)}, got {_shown(self.actual)}"
        return f"{self.field}: {what}"


class InvalidTransaction(InvalidBlock):
    """Raised when a transaction is invalid at its position in its block."""

    def __init__(self, index: int, reason: str, header: Header | None = None) -> None:
        """index: the transaction's index in its block, from 0. reason: for the text."""
        self.index = index
        super().__init__(header, f"transaction {index}", reason=reason)


def _shown(value: object) -> str:
    """Return a value as text: bytes in hex, None as `none`."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return "none" if value is None else str(value)
