"""Numbers of blocks that are named by tags or hashes."""

from __future__ import annotations

import re

from nodeapi.errors.blocks import HeaderNotFound
from nodeapi.methods.context import Context

_NUMBER = re.compile(rb'"number":"0x([0-9a-f]+)"')


async def block_number_of(context: Context, number_or_tag: int | str) -> int:
    """Return the number of a canonical block. `pending` is the head.

    A number is returned unchanged, also if the chain is shorter.

    Raises: TaggedBlockNotFound; HeaderNotFound if the network has no blocks.
    """
    if isinstance(number_or_tag, int):
        return number_or_tag
    if number_or_tag == "earliest":
        return 0
    store, network_id = context.store, context.network.id
    if number_or_tag not in ("safe", "finalized"):
        return await store.head_number(network_id)
    block_hash = await store.canonical_hash(network_id, number_or_tag)
    number = None if block_hash is None else await number_of_hash(context, block_hash)
    if number is None:
        raise HeaderNotFound
    return number


async def number_of_hash(context: Context, block_hash: bytes) -> int | None:
    """Return the number of a block, canonical or not, None if it is not stored."""
    document = await context.store.block_by_hash(
        context.network.id, block_hash, False, False
    )
    found = None if document is None else _NUMBER.search(document)
    return None if found is None else int(found[1], 16)
