"""Comparison of expected accounts (`postState`, `state`) with the actual ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evm.genesis import genesis_accounts
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.memory_state import MemoryState
from tests.consensus.verdict import Mismatch


def compare_accounts(expected: Mapping[str, Any], state: MemoryState) -> None:
    """Compare the listed accounts.

    Others are left to the state root. Raises Mismatch with the first field that differs.
    """
    for address, account in genesis_accounts({"alloc": expected}).items():
        place = f"account 0x{address.hex()}"
        found = state.account(address)
        if found is None:
            raise Mismatch(f"{place} is missing")
        code = b""
        if found.code_hash != EMPTY_CODE_HASH:
            code = state.code(found.code_hash)
        slots = {slot: state.storage(address, slot) for slot in account.storage}
        extra = set(state.live_slots(address)) - account.storage.keys()
        for field, due, there in (
            ("nonce", account.nonce, found.nonce),
            ("balance", account.balance, found.balance),
            ("code", account.code, code),
        ):
            if due != there:
                raise Mismatch(f"{place}, {field}: expected {due!r}, got {there!r}")
        for slot, due in account.storage.items():
            if slots[slot] != due:
                raise Mismatch(
                    f"{place}, slot {slot:#x}: expected {due:#x}, got {slots[slot]:#x}"
                )
        for slot in sorted(extra):
            there = state.storage(address, slot)
            raise Mismatch(f"{place}, slot {slot:#x}: expected 0x0, got {there:#x}")
