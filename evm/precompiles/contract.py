"""The interface of precompiled contracts: a price and a function of the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evm.frame_errors import FrameError

Data = bytes | memoryview
"""The input. A call's is a view of the caller's memory: copying a megabyte of which a
contract reads 128 bytes would take longer than the contract."""
Price = Callable[[Data], int]
"""Returns the gas for an input, whether the input is valid or not."""
Function = Callable[[Data], bytes]
"""Returns the output for an input. Raises: PrecompileError."""


class Precompile(NamedTuple):
    """A precompiled contract. As in geth, its gas is charged before it reads the input."""

    price: Price
    function: Function


class PrecompileError(FrameError):
    """Raised when a contract rejects its input. The call fails and uses all its gas.

    The message is the one of geth's tracers.

    Source: go-ethereum v1.17.10, core/vm/contracts.go
    """


def fixed(gas: int) -> Price:
    """Return a price that does not depend on the input."""
    return lambda data: gas


def prefix(data: Data, size: int) -> bytes:
    """Return the first `size` bytes, padded with zeros."""
    return bytes(data[:size]).ljust(size, b"\x00")


def number(data: Data, start: int, size: int) -> int:
    """Return the big-endian number at an offset.

    Bytes beyond the data's end are zero.
    """
    found = bytes(data[start : start + size])
    return int.from_bytes(found, "big") << 8 * (size - len(found))
