"""Numbers of the blocks that tags name."""

from __future__ import annotations

import re

from nodeapi.errors import HeaderNotFound
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
    if block_hash is None:
        raise HeaderNotFound
    document = await store.block_by_hash(network_id, block_hash, False, False)
    found = None if document is None else _NUMBER.search(document)
    if found is None:
        raise HeaderNotFound
    return int(found[1], 16)
