"""The precompiled contract for BLAKE2b's compression function F (EIP-152), in Rust."""

from __future__ import annotations

from blake2b import decode_and_compress

from evm.precompiles.contract import Data, PrecompileError, number

LENGTH = 213
"""Bytes of the input: rounds, state, message block, offset counters, final flag."""


def gas(data: Data) -> int:
    """Return one gas per round. Input of a wrong length costs nothing and fails."""
    return number(data, 0, 4) if len(data) == LENGTH else 0


def compress(data: Data) -> bytes:
    """Return the 64-byte state after the input's number of rounds.

    Raises: PrecompileError if the length or the final flag is invalid.
    """
    if len(data) != LENGTH:
        raise PrecompileError("invalid input length")
    if data[-1] > 1:
        raise PrecompileError("invalid final flag")
    state: bytes = decode_and_compress(bytes(data))
    return state
