"""Events for dapps over two processes: session changes, heads and logs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.coroutines import scenario
from tests.support.dapps import Owner, exchange, nothing_comes, orm
from tests.support.live import Live, live_service
from tests.support.waiting import in_time, until
from tests.support.wallet import A1, A2, served_chains
from wallets import internal_key
from wallets.client import CallFailed, WalletClient
from wallets.sockets import limits

ALICE = Signer("alice")
SCOPE = "eip155:7"
SOCKETS = 6
"""Number of sockets, which suffices for both processes to get some."""

GENESIS = fork_genesis("shanghai", ALICE)


@pytest.fixture(scope="module")
def builder(module_db: None) -> ChainBuilder:
    """Return a chain with two blocks, which tests extend."""
    served_chains()
    found = ChainBuilder(GENESIS)
    found.deploy(ALICE, contract("slots").init_code())
    found.block()
    found.block()
    chains.import_blocks("net", GENESIS, found.blocks)
    return found


@pytest.fixture(scope="module")
def live(builder: ChainBuilder) -> Iterator[Live]:
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


async def sockets(owner: Owner, stack: AsyncExitStack, count: int) -> list[Any]:
    opened = [await owner.connect() for _ in range(count)]
    for client in opened:
        stack.push_async_callback(client.close)
    return opened


async def build(builder: ChainBuilder, count: int) -> list[Any]:
    """Add blocks to the chain, as an importer in another transaction does."""
    blocks = [builder.block() for _ in range(count)]
    await orm(chains.import_blocks, "net", GENESIS, blocks)
    return blocks


async def heads(client: WalletClient, subscription: str, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        event = await in_time(client.next_event())
        assert event["jsonrpc"] == "2.0"
        assert "id" not in event
        assert event["method"] == "wallet_notify"
        assert event["params"]["scope"] == SCOPE
        notification = event["params"]["notification"]
        assert notification["method"] == "eth_subscription"
        assert notification["params"]["subscription"] == subscription
        found.append(notification["params"]["result"])
    return found


# wallet_sessionChanged


@scenario
async def test_the_last_event_has_the_current_session_after_fast_changes(
    owner: Owner,
) -> None:
    async with AsyncExitStack() as stack:
        clients = await sockets(owner, stack, SOCKETS)
        await owner.create(clients[0], "eip155:1", "eip155:137")
        for turn in range(10):
            chosen = [[A1, A2], [A1]][turn % 2]
            await orm(owner.edit, "eip155:1", "eip155:137", addresses=chosen)
        await clients[3].call("wallet_revokeSession", {"scopes": ["eip155:1"]})
        final = await clients[3].call("wallet_getSession")
        for client in [*clients[:3], *clients[4:]]:
            while True:
                event = await in_time(client.next_event())
                if event["params"]["sessionScopes"] == final["sessionScopes"]:
                    break
            await nothing_comes(client, 0.1)


# newHeads


@pytest.mark.case(114)
@scenario
async def test_every_block_is_sent_in_order_on_every_socket(
    owner: Owner, builder: ChainBuilder
) -> None:
    async with AsyncExitStack() as stack:
        clients = await sockets(owner, stack, SOCKETS)
        await owner.create(clients[0], SCOPE)
        for client in clients[1:]:
            await client.next_event()
        ids = [
            await client.invoke(SCOPE, "eth_subscribe", "newHeads")
            for client in clients
        ]
        assert len(set(ids)) == SOCKETS
        blocks = await build(builder, 1) + await build(builder, 40)
        expected = ["0x" + block.header.hash.hex() for block in blocks]
        for client, name in zip(clients, ids, strict=True):
            found = await heads(client, name, len(blocks))
            assert [head["hash"] for head in found] == expected
            assert "transactions" not in found[0]
            newest = await client.invoke(SCOPE, "eth_blockNumber")
            assert newest == found[-1]["number"]
            await nothing_comes(client, 0.1)


@scenario
async def test_announced_blocks_can_be_read_in_every_process(
    owner: Owner, builder: ChainBuilder
) -> None:
    async with AsyncExitStack() as stack:
        clients = await sockets(owner, stack, SOCKETS)
        await owner.create(clients[0], SCOPE)
        name = await clients[0].invoke(SCOPE, "eth_subscribe", "newHeads")
        for _ in range(5):
            await build(builder, 1)
            (head,) = await heads(clients[0], name, 1)
            for client in clients:
                asked = [head["number"], False]
                block = await client.invoke(SCOPE, "eth_getBlockByNumber", *asked)
                assert block["hash"] == head["hash"]


@pytest.mark.case(116, 117, 120)
@scenario
async def test_a_subscription_ends_with_eth_unsubscribe(
    owner: Owner, builder: ChainBuilder
) -> None:
    async with AsyncExitStack() as stack:
        first, second = await sockets(owner, stack, 2)
        await owner.create(first, SCOPE, "eip155:1")
        await second.next_event()
        name = await first.invoke(SCOPE, "eth_subscribe", "newHeads")
        assert not await second.invoke(SCOPE, "eth_unsubscribe", name)
        assert not await first.invoke("eip155:1", "eth_unsubscribe", name)
        await build(builder, 1)
        await heads(first, name, 1)
        assert await first.invoke(SCOPE, "eth_unsubscribe", name)
        assert not await first.invoke(SCOPE, "eth_unsubscribe", name)
        await build(builder, 1)
        await nothing_comes(first)
        await nothing_comes(second, 0.1)


@pytest.mark.case(122)
@scenario
async def test_no_event_is_sent_after_the_grant_was_revoked(
    owner: Owner, builder: ChainBuilder
) -> None:
    async with AsyncExitStack() as stack:
        first, second = await sockets(owner, stack, 2)
        await owner.create(first, SCOPE, "eip155:1")
        await second.next_event()
        name = await first.invoke(SCOPE, "eth_subscribe", "newHeads")
        await orm(owner.edit, SCOPE, "eip155:1", addresses=[A1, A2])
        event = await first.next_event()
        assert event["method"] == "wallet_sessionChanged"
        await build(builder, 1)  # the accounts have changed, but the scope has not
        await heads(first, name, 1)
        await orm(owner.edit, "eip155:1")
        await build(builder, 1)
        event = await in_time(first.next_event())
        assert list(event["params"]["sessionScopes"]) == ["eip155:1"]
        await nothing_comes(first)
        with pytest.raises(CallFailed) as failed:
            await first.invoke(SCOPE, "eth_subscribe", "newHeads")
        assert failed.value.code == 4100


@pytest.mark.case(123)
@scenario
async def test_blocks_and_revocations_racing_never_let_a_head_through(
    owner: Owner, builder: ChainBuilder
) -> None:

    async def revoke_amid(client: WalletClient) -> None:
        already = client.received.qsize()
        await until(lambda: client.received.qsize() > already)  # a first head
        assert await client.call("wallet_revokeSession")
        while not client.received.empty():  # notifications before the response
            client.received.get_nowait()

    async def ends_in_silence(client: WalletClient, own: bool) -> None:
        """Check that no head follows the event of the session's end."""
        is_over = own
        while not is_over:
            event = await in_time(client.next_event())
            if event["method"] == "wallet_sessionChanged":
                is_over = event["params"]["sessionScopes"] == {}
        await nothing_comes(client)

    async with AsyncExitStack() as stack:
        clients = await sockets(owner, stack, SOCKETS)
        for _ in range(4):
            await owner.create(clients[0], SCOPE)
            for client in clients:
                await client.invoke(SCOPE, "eth_subscribe", "newHeads")
            await asyncio.gather(build(builder, 6), revoke_amid(clients[1]))
            await build(builder, 1)
            await asyncio.gather(
                *(ends_in_silence(one, own=one is clients[1]) for one in clients)
            )


@pytest.mark.case(115)
@scenario
async def test_the_answer_comes_before_the_first_head(
    owner: Owner, builder: ChainBuilder
) -> None:

    async def exchange_next(socket: Any) -> Any:
        return json.loads(await socket.recv())

    async with await owner.connect() as client:
        await owner.create(client, SCOPE)
    ask = {"scope": SCOPE, "request": {"method": "eth_subscribe"}}
    ask["request"]["params"] = ["newHeads"]  # type: ignore[index]
    call = {"jsonrpc": "2.0", "id": 1, "method": "wallet_invokeMethod"}
    building = asyncio.create_task(build(builder, 20))
    async with owner.raw() as socket:
        for _ in range(20):
            known: set[str] = set()
            answer = await exchange(socket, {**call, "params": ask})
            while "method" in answer:
                inner = answer["params"]["notification"]["params"]
                known.add(inner["subscription"])
                answer = await exchange_next(socket)
            assert answer["result"] not in known
    await building


@pytest.mark.case(118)
@pytest.mark.parametrize("wrong", [["bogus"], [], ["logs", {"address": "0x1"}]])
@scenario
async def test_what_can_not_be_subscribed_to_is_refused(
    owner: Owner, wrong: list[Any]
) -> None:
    async with await owner.connect() as client:
        await owner.create(client, SCOPE)
        with pytest.raises(CallFailed) as failed:
            await client.invoke(SCOPE, "eth_subscribe", *wrong)
        assert failed.value.code == -32602


@scenario
async def test_a_socket_has_no_more_subscriptions_than_allowed(owner: Owner) -> None:
    async with await owner.connect() as client:
        await owner.create(client, SCOPE)
        for _ in range(limits.MAX_SUBSCRIPTIONS):
            await client.invoke(SCOPE, "eth_subscribe", "newHeads")
        with pytest.raises(CallFailed) as failed:
            await client.invoke(SCOPE, "eth_subscribe", "newHeads")
        assert failed.value.code == -32005
