from __future__ import annotations

import asyncio

import pytest

from tests.support.named_token import import_token_chain
from tests.support.wallet import Rig
from wallets.nodes.own_node import OwnNode
from wallets.nodes.page_node import PageNode
from wallets.serving.wallet import Wallet
from wallets.upstream import ChainNode

CHAIN_ID = 4243
SCOPE = f"eip155:{CHAIN_ID}"


@pytest.fixture(scope="module")
def chain(parts: tuple[asyncio.Runner, Wallet]) -> None:
    import_token_chain("tokens", CHAIN_ID)
    runner, wallet = parts

    async def refresh() -> None:
        await wallet.node.directory.refresh()

    runner.run(refresh())


@pytest.fixture
def node(rig: Rig, chain: None) -> ChainNode:
    """Return this service as the node of a chain with a token."""
    return node_for(rig, rig.user.pk)


def node_for(rig: Rig, user: int) -> ChainNode:
    """Return the node for the pages of a user. chain: was imported."""

    async def make() -> ChainNode:
        page_node = PageNode(rig.wallet, asyncio.get_running_loop()).of(user)
        return (await page_node.nodes([SCOPE]))[SCOPE]

    found = rig.run(make())
    assert isinstance(found, OwnNode)
    return found
