"""SHA-256, RIPEMD-160, BLAKE2b's compression function F (EIP-152), and the identity function."""

from __future__ import annotations

import hashlib

from blake2b import decode_and_compress

from evm.precompiles.contract import Data, PrecompileError, Price, number


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


_BLAKE2_LENGTH = 213
"""Bytes of the input of F: rounds, state, message block, offset counters, final flag."""


def blake2_gas(data: Data) -> int:
    """Return one gas per round. Input of a wrong length costs nothing and fails."""
    return number(data, 0, 4) if len(data) == _BLAKE2_LENGTH else 0


def blake2_compress(data: Data) -> bytes:
    """Return the 64-byte state of BLAKE2b after the input's number of rounds.

    Raises: PrecompileError if the length or the final flag is invalid.
    """
    if len(data) != _BLAKE2_LENGTH:
        raise PrecompileError("invalid input length")
    if data[-1] > 1:
        raise PrecompileError("invalid final flag")
    state: bytes = decode_and_compress(bytes(data))
    return state
