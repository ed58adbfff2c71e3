"""Mining rewards of stored blocks."""

from __future__ import annotations

import re

from evm.blocks import decode_headers
from evm.rewards import MiningReward, mining_rewards
from nodeapi.methods.context import Context

_UNPAID = re.compile(rb'"(difficulty|number)":"0x0"')
"""Matches block objects without rewards: block 0, and all blocks after the merge."""


async def block_rewards(
    context: Context, block_hash: bytes
) -> tuple[int, list[MiningReward]]:
    """Return the number of a block and its mining rewards.

    0 without rewards if there are none, or no such block.
    """
    store, network_id = context.store, context.network.id
    document = await store.block_by_hash(network_id, block_hash, False, False)
    if document is None or _UNPAID.search(document) is not None:
        return 0, []
    raw = await store.raw_block(network_id, block_hash)
    if raw is None:
        return 0, []
    header, uncles = decode_headers(raw)
    config = await store.genesis_config(network_id)
    return header.number, mining_rewards(header, uncles, config)
