"""Subscriptions of third-party clients: web3.py, and viem and ethers in Node.js."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from web3 import AsyncWeb3, WebSocketProvider

from evm.blocks import Block
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.clients.programs import FOLDER
from tests.support import chains
from tests.support.coroutines import run
from tests.support.dapps import orm
from tests.support.live import Live, live_service
from tests.support.waiting import in_time

ALICE = Signer("alice")
CHAIN_ID = 7

pytestmark = pytest.mark.django_db(transaction=True)


class Chain:
    """A network with a token. Each new block contains one transfer."""

    def __init__(self) -> None:
        self._genesis = fork_genesis("shanghai", ALICE, chain_id=CHAIN_ID)
        self._builder = ChainBuilder(self._genesis)
        code = contract("token").init_code((10**6).to_bytes(32, "big"))
        self.token = self._builder.deploy(ALICE, code)
        chains.import_blocks("net", self._genesis, [self._builder.block()])

    async def grow(self) -> Block:
        """Import one more block, and return it."""
        selector = bytes.fromhex("a9059cbb")  # transfer(address,uint256)
        data = selector + ALICE.address.rjust(32, b"\0") + (1).to_bytes(32, "big")
        self._builder.send(ALICE, self.token, data=data)
        block = self._builder.block()
        await orm(chains.import_blocks, "net", self._genesis, [block])
        return block


@pytest.fixture
def chain() -> Chain:
    return Chain()


@pytest.fixture
def live(chain: Chain) -> Iterator[Live]:
    with live_service() as live:
        yield live


def socket_url(live: Live, key: str) -> str:
    return f"{live.base_url.replace('http:', 'ws:')}/net/ws/v3/{key}"


def test_web3_gets_heads_and_logs(chain: Chain, live: Live) -> None:
    url = socket_url(live, live.new_key())

    async def scenario() -> None:
        async with AsyncWeb3(WebSocketProvider(url)) as w3:
            assert await w3.eth.chain_id == CHAIN_ID
            heads = await w3.eth.subscribe("newHeads")
            token: Any = "0x" + chain.token.hex()
            logs = await w3.eth.subscribe(
                "logs", {"address": w3.to_checksum_address(token)}
            )
            block = await chain.grow()
            messages = w3.socket.process_subscriptions()
            found: dict[Any, Any] = {}
            while len(found) < 2:
                message = await in_time(anext(messages))
                found[message["subscription"]] = message["result"]
            assert found[heads]["hash"] == block.header.hash
            assert found[logs]["transactionHash"] == block.transactions[0].hash
            assert await w3.eth.unsubscribe(heads) is True

    run(scenario())


@pytest.mark.parametrize("library", ["viem", "ethers"])
def test_libraries_for_node_get_heads_and_logs(
    chain: Chain, live: Live, library: str
) -> None:
    if not (FOLDER / "node_modules").is_dir() or shutil.which("node") is None:
        pytest.skip("`make test-clients` installs the clients")
    url = socket_url(live, live.new_key())

    async def scenario() -> None:
        arguments = [library, url, "0x" + chain.token.hex()]
        process = await asyncio.create_subprocess_exec(
            *["node", "subscribe.mjs", *arguments],
            cwd=FOLDER,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            lines = process.stdout
            assert await in_time(lines.readline()) == b'"subscribed"\n'
            block = await chain.grow()
            found = dict(
                [json.loads(await in_time(lines.readline())) for _ in range(2)]
            )
            assert found == {
                "block": block.header.number,
                "log": "0x" + block.transactions[0].hash.hex(),
            }
        finally:
            process.kill()
            await process.wait()

    run(scenario())
