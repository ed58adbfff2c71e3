"""Symbols and decimals of tokens, as their contracts report them (ERC-20).

A contract can have any symbol, also that of another token. Pages therefore show the address
of the contract beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from abi.types import WORD

SYMBOL = bytes.fromhex("95d89b41")
"""The input of symbol()."""

DECIMALS = bytes.fromhex("313ce567")
"""The input of decimals()."""

READ_GAS = 100_000
"""Gas of a read call, which also limits the length of what a contract returns. Tokens behind
a proxy need about 30 000."""

MAX_DECIMALS = 36
"""Amounts of tokens with more decimals are shown in the smallest unit."""

_SYMBOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9.$_+-]{0,15}")
"""Symbols that are shown. Others could look like another token's, or like text of the
page."""


@dataclass(frozen=True, slots=True)
class Token:
    """Symbol and decimals that a token's contract reports.

    symbol: "" if the contract reports none, or one with unusual characters.
    decimals: None if the contract reports none, or more than MAX_DECIMALS.
    """

    symbol: str = ""
    decimals: int | None = None


UNKNOWN = Token()


def read_token(symbol: bytes, decimals: bytes) -> Token:
    """Return a token from the data that two calls returned, b"" for a failed one."""
    return Token(_read_symbol(symbol), _read_decimals(decimals))


def shifted(amount: int, decimals: int) -> str:
    """Return an amount of smallest units in whole tokens, exactly: `1,234.05`."""
    whole, rest = divmod(amount, 10**decimals)
    fraction = f"{rest:0{decimals}d}".rstrip("0") if decimals else ""
    return f"{whole:,}" + (f".{fraction}" if fraction else "")


def _read_symbol(data: bytes) -> str:
    """Return a symbol, a string or 32 bytes as of early tokens; "" if it is unusual."""
    if len(data) >= 3 * WORD:
        length = int.from_bytes(data[WORD : 2 * WORD])
        text = data[2 * WORD : 2 * WORD + length] if length <= WORD else b""
    else:
        text = data.rstrip(b"\0")
    shown = text.decode("ascii", errors="replace")
    return shown if _SYMBOL.fullmatch(shown) else ""


def _read_decimals(data: bytes) -> int | None:
    if len(data) != WORD:
        return None
    decimals = int.from_bytes(data)
    return decimals if decimals <= MAX_DECIMALS else None
