"""Keys that lead to nodes of a trie: a node is proved together with a key below it."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from eth_typing import Address

from evm.proved_state import Keys
from evm.signatures import keccak
from evm.state_trie import STATE_OWNER, address_key, slot_key
from evm.trie_nodes import to_nibbles
from nodeapi.proofs.values import NoProof

if TYPE_CHECKING:
    from collections.abc import Collection

    from evm.changes import Changes

PROBED_NIBBLES = 5
"""Longest path below which a key is searched for by trial, a million hashes in a second."""


def changed_below(owner: bytes, paths: Collection[bytes], changes: Changes) -> Keys:
    """Return the changed keys of one trie below these paths."""
    wanted = tuple(paths)
    if owner == STATE_OWNER:
        keys = {
            address: to_nibbles(address_key(address)) for address in changes.accounts
        }
        return Keys(
            accounts={key for key, path in keys.items() if path.startswith(wanted)}
        )
    address = _owner_of(owner, changes)
    return Keys(
        slots={
            (address, slot)
            for slot in changes.storage[address]
            if to_nibbles(slot_key(slot)).startswith(wanted)
        }
    )


def _owner_of(owner: bytes, changes: Changes) -> Address:
    """Return the account whose storage trie has this owner."""
    return next(each for each in changes.storage if address_key(each) == owner)


def probes_below(owner: bytes, paths: Collection[bytes], changes: Changes) -> Keys:
    """Return some key below each path: its proof ends at the node with the path.

    Raises: NoProof for longer paths than `PROBED_NIBBLES`.
    """
    if owner == STATE_OWNER:
        address, trie = None, "state trie"
    else:
        address = _owner_of(owner, changes)
        trie = f"storage of 0x{address.hex()}"
    wanted = set(paths)
    if any(len(path) > PROBED_NIBBLES for path in wanted):
        raise NoProof(
            f"no upstream sends the node of the {trie} beside one that is deleted"
        )
    probes = Keys()
    for number in count():
        if not wanted:
            return probes
        data = number.to_bytes(32 if address else 20)
        path = to_nibbles(keccak(data))
        below = [each for each in wanted if path.startswith(each)]
        if below:
            wanted -= set(below)
            if address:
                probes.slots.add((address, number))
            else:
                probes.accounts.add(Address(data))
    raise AssertionError
