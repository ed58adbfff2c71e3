"""Balances of accounts in ether, on several networks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from wallets.upstream import ChainNode

MAX_READ = 500
"""Balances that are read for a page."""


async def read_balances(
    nodes: Mapping[str, ChainNode], addresses: Sequence[str]
) -> dict[tuple[str, str], int]:
    """Return balances in wei at the newest blocks, by scope and address.

    nodes: by scope. Balances that can't be read are left out.
    """
    pairs = [(scope, address) for address in addresses for scope in nodes]
    pairs = pairs[:MAX_READ]
    found = await asyncio.gather(
        *(
            nodes[scope].call("eth_getBalance", address, "latest")
            for scope, address in pairs
        ),
        return_exceptions=True,
    )
    return {
        pair: int(value, 16)
        for pair, value in zip(pairs, found, strict=True)
        if isinstance(value, str)
    }
