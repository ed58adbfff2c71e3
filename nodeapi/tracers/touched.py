"""An account with its slots that a transaction touched, before it and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodeapi.evm.world import EMPTY_CODE_HASH, Account

EMPTY = Account(0, 0, EMPTY_CODE_HASH)
"""An account that is not there, too: https://eips.ethereum.org/EIPS/eip-161."""

Slot = tuple[int, int, int]
"""Slot, its value before, its value after."""


@dataclass(slots=True)
class TouchedAccount:
    """An account that a transaction looked at or changed."""

    address: bytes
    before: Account
    after: Account
    slots: Sequence[Slot] = ()
    """In their order."""
    is_destroyed: bool = False
    """Whether it destroyed itself for good, even where that was undone."""
