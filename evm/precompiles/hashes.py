"""SHA-256, RIPEMD-160 and the identity function."""

from __future__ import annotations

import hashlib

from evm.precompiles.contract import Data, Price


def word_gas(base: int, each: int) -> Price:
    """Return the price of a contract: a base, and more for each 32 bytes of input."""
    return lambda data: base + each * ((len(data) + 31) // 32)


def sha256(data: Data) -> bytes:
    """Return the hash, 32 bytes."""
    return hashlib.sha256(data).digest()


def ripemd160(data: Data) -> bytes:
    """Return the hash of 20 bytes after 12 zeros."""
    return hashlib.new("ripemd160", data).digest().rjust(32, b"\x00")


def identity(data: Data) -> bytes:
    """Return the input."""
    return bytes(data)
