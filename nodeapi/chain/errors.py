"""Errors of blocks that are not connected to the genesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.errors import InvalidBlock

if TYPE_CHECKING:
    from eth_typing import Hash32

    from evm.headers import Header


class UnknownParent(InvalidBlock):
    """Raised for a block whose parent is not in the database."""


def detached(header: Header, genesis_hash: Hash32) -> InvalidBlock:
    """Return the error for a block whose parent is not in the database.

    For blocks 0 and 1, the usual cause is a file of another chain. The message
    therefore contains the network's genesis hash.
    """
    genesis = f"block 0 of this network is 0x{genesis_hash.hex()}"
    if header.number == 0:
        return InvalidBlock(header, "genesis", genesis)
    reason = f"unknown ancestor 0x{header.parent_hash.hex()}"
    if header.number == 1:
        reason += f", {genesis}"
    return UnknownParent(header, "parent", reason)
