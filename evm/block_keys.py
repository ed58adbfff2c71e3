"""Accounts and slots that a block accesses whatever its transactions execute."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from eth_utils.exceptions import ValidationError

from evm.execution import (
    BEACON_ROOTS_ADDRESS,
    BEACON_ROOTS_RING,
    HISTORY_RING,
    HISTORY_STORAGE_ADDRESS,
)
from evm.proved_state import Keys
from evm.requests import BUILDER_QUEUES, QUEUE_SLOTS, QUEUES
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.blocks import Block
    from evm.headers import Header


def known_keys(block: Block) -> Keys:
    """Return the accounts and slots that are known from a block without executing it."""
    keys = system_keys(block.header)
    keys.accounts |= named_accounts(block)
    return keys


def named_accounts(block: Block) -> set[Address]:
    """Return the accounts that a block names outside of calls' data."""
    addresses = {block.header.coinbase}
    addresses.update(w.address for w in block.withdrawals or ())
    for transaction in block.transactions:
        addresses.add(transaction.to)
        with suppress(ValidationError):  # the execution reports it
            addresses.add(transaction.sender)
    addresses.discard(CREATE_ADDRESS)
    return addresses


def system_keys(header: Header) -> Keys:
    """Return what a block's system calls access, apart from the requests in queues.

    The fork shows in the header's fields: Cancun, Prague and Amsterdam have added one each.
    """
    found: dict[Address, tuple[int, ...]] = {}
    if header.parent_beacon_root is not None:
        place = header.timestamp % BEACON_ROOTS_RING
        found[BEACON_ROOTS_ADDRESS] = (place, place + BEACON_ROOTS_RING)
    if header.requests_hash is not None:
        found[HISTORY_STORAGE_ADDRESS] = ((header.number - 1) % HISTORY_RING,)
        found |= dict.fromkeys(QUEUES.values(), QUEUE_SLOTS)
    if header.block_access_list_hash is not None:
        found |= dict.fromkeys(BUILDER_QUEUES.values(), QUEUE_SLOTS)
    return Keys(
        set(found), {(owner, slot) for owner, slots in found.items() for slot in slots}
    )
