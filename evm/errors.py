"""Errors of invalid blocks and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

    from eth_typing import Hash32

    from evm.headers import Header


class InvalidBlock(Exception):
    """Raised when a block breaks a rule of its fork.

    The message is one line: the block's number and hash, the field, and the reason. The
    reason is geth's sentence where geth has one for the rule: of go-ethereum v1.17.10,
    core/block_validator.go, consensus/beacon, consensus/ethash and consensus/misc.
    """

    def __init__(self, header: Header | None, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        self.number: int | None = None
        self.hash: Hash32 | None = None
        super().__init__(field, reason)
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
        return f"{self.field}: {self.reason}"


class InvalidTransaction(InvalidBlock):
    """Raised when a transaction is invalid at its position in its block.

    index: the transaction's index in its block, from 0. text: why, in geth's words.
    """

    def __init__(
        self, index: int, transaction_hash: Hash32, text: str, *, is_outdated: bool
    ) -> None:
        """is_outdated: whether the transaction's nonce was used before."""
        self.index = index
        self.text = text
        self.is_outdated = is_outdated
        reason = f"could not apply tx {index} [0x{transaction_hash.hex()}]: {text}"
        super().__init__(None, f"transaction {index}", reason)
