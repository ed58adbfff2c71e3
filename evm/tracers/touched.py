"""An account that a transaction touched, with its slots, before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evm.world import NO_ACCOUNT, Account

EMPTY = NO_ACCOUNT
"""An empty or absent account: https://eips.ethereum.org/EIPS/eip-161."""

Slot = tuple[int, int, int]
"""Slot, its value before, its value after."""


@dataclass(slots=True)
class TouchedAccount:
    """An account that a transaction read or changed."""

    address: bytes
    before: Account
    after: Account
    slots: Sequence[Slot] = ()
    """In ascending order."""
    is_destroyed: bool = False
    """Whether it self-destructed with effect, even if that was reverted."""
