"""geth as an untrusted upstream: what it sends of states is enough to execute blocks."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from evm.blocks import decode_block
from nodeapi.upstreams import hints
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import MethodUnavailable
from tests.golden.chains import CHAINS
from tests.golden.geth import GethError, running_geth
from tests.live import programs
from tests.support.proving import ProvingChecks

BLOCKS = 12
"""Blocks of each chain to check, the newest ones."""


@pytest.mark.usefixtures("live_blocks")
@pytest.mark.parametrize("name", ["sample", "amsterdam"])
def test_blocks_are_executed_with_what_geth_sends(name: str, tmp_path: Path) -> None:
    chain = CHAINS[name]()
    blocks = list(map(decode_block, chain.raw))
    first = max(len(blocks) - BLOCKS, 0) + 1
    try:
        binary = programs.geth()
    except GethError as error:
        pytest.skip(str(error))

    async def scenario(url: str) -> Counter[str]:
        async with UpstreamClient(url) as client:
            checks = ProvingChecks(client, chain.genesis, blocks)
            for number in range(first, len(blocks) + 1):
                await checks.check(number, has_list=False)
            head = blocks[-1].header
            with pytest.raises(MethodUnavailable):
                await hints.listed_keys(client, head.hash, head.hash, 1000)
            return checks.counts

    with running_geth(binary, chain.genesis, b"".join(chain.raw), tmp_path) as geth:
        counts = asyncio.run(scenario(geth.url))
    assert counts["receipts"] == sum(
        len(block.transactions) for block in blocks[first - 1 :]
    )
    assert counts["slots of calls"] > 0
    print(name, dict(counts))
