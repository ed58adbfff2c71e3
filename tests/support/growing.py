"""A network of a running service whose blocks a test imports."""

from __future__ import annotations

from typing import Any

from evm.blocks import Block
from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from tests.support import chains
from tests.support.dapps import next_event, orm
from wallets.client import WalletClient


class GrowingChain:
    """A chain with one empty block, imported as a network named by its chain id."""

    def __init__(self, chain_id: int) -> None:
        self.scope = f"eip155:{chain_id}"
        self._slug = f"net{chain_id}"
        self._genesis = fork_genesis("shanghai", chain_id=chain_id)
        self._builder = ChainBuilder(self._genesis)
        self._block()
        chains.import_blocks(self._slug, self._genesis, self._builder.blocks)

    async def grow(self) -> str:
        """Import one more block, and return its hash."""
        block = self._block()
        await orm(chains.import_blocks, self._slug, self._genesis, [block])
        return "0x" + block.header.hash.hex()

    async def grow_by(self, count: int) -> list[str]:
        """Import several blocks at once; return their hashes."""
        blocks = [self._block() for _ in range(count)]
        await orm(chains.import_blocks, self._slug, self._genesis, blocks)
        return ["0x" + block.header.hash.hex() for block in blocks]

    def _block(self) -> Block:
        """Return one more block. Its extra data differs between chains."""
        return self._builder.block(extra_data=self.scope.encode())


async def subscribed(client: WalletClient, scope: str) -> str:
    """Subscribe to the new heads of a chain; return the subscription's id."""
    name: str = await client.invoke(scope, "eth_subscribe", "newHeads")
    return name


async def next_head(client: WalletClient) -> tuple[str, str, str]:
    """Return scope, subscription and block hash of a client's next head event."""
    event = await next_event(client)
    inner: Any = event["params"]["notification"]["params"]
    return event["params"]["scope"], inner["subscription"], inner["result"]["hash"]
