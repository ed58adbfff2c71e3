"""Addresses of the precompiled contracts in each fork.

This module does not import the EVM, so that processes that serve trace records load
faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_INTRODUCED: dict[str, Iterable[int]] = {
    "frontier": range(0x01, 0x05),
    "homestead": (),
    "tangerine_whistle": (),
    "spurious_dragon": (),
    "byzantium": range(0x05, 0x09),
    "constantinople": (),
    "petersburg": (),
    "istanbul": (0x09,),
    "muir_glacier": (),
    "berlin": (),
    "london": (),
    "arrow_glacier": (),
    "gray_glacier": (),
    "paris": (),
    "shanghai": (),
    "cancun": (0x0A,),
    "prague": range(0x0B, 0x12),
    "osaka": (0x100,),
}
"""Forks in order, and the contracts that each introduced.

Source: EIP-198, 196, 197, 152, 4844, 2537, 7951"""

FORK_NAMES = tuple(_INTRODUCED)


@lru_cache
def precompile_addresses(fork_name: str) -> frozenset[bytes]:
    """Return the addresses, 20 bytes each, of a fork of `FORK_NAMES`."""
    until = FORK_NAMES[: FORK_NAMES.index(fork_name) + 1]
    numbers = [number for name in until for number in _INTRODUCED[name]]
    return frozenset(number.to_bytes(20, "big") for number in numbers)
