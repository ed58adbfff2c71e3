"""Subscriptions to logs: reorganisations, and failures of parts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from evm.signatures import keccak
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains, copies
from tests.support.coroutines import run
from tests.support.dapps import Owner, nothing_comes, orm
from tests.support.live import live_service
from tests.support.waiting import in_time
from tests.support.wallet import served_chains
from wallets import internal_key
from wallets.client import Disconnected, WalletClient
from wallets.models import LiveSocket

ALICE, BOB = Signer("alice"), Signer("bob")
SCOPE = "eip155:7"
TRANSFER = keccak(b"Transfer(address,address,uint256)")

pytestmark = pytest.mark.django_db(transaction=True)


GENESIS = fork_genesis("shanghai", ALICE, BOB)


def transfer(to: bytes, amount: int) -> bytes:
    selector = keccak(b"transfer(address,uint256)")[:4]
    return selector + to.rjust(32, b"\0") + amount.to_bytes(32, "big")


@pytest.fixture
def trunk() -> Iterator[ChainBuilder]:
    found = ChainBuilder(GENESIS)
    supply = (10**6).to_bytes(32, "big")
    found.token = found.deploy(ALICE, contract("token").init_code(supply))  # type: ignore[attr-defined]
    found.block()
    copies.chain("net", GENESIS, found.blocks)
    served_chains()
    internal_key.ensure()
    yield found


async def bring(blocks: list[Any]) -> None:
    await orm(chains.import_blocks, "net", GENESIS, blocks)


async def results(client: WalletClient, count: int) -> list[Any]:
    found = []
    while len(found) < count:
        event = await in_time(client.next_event())
        found.append(event["params"]["notification"]["params"]["result"])
    return found


def test_only_logs_that_match_the_filter_are_sent(trunk: ChainBuilder) -> None:
    token = trunk.token  # type: ignore[attr-defined]

    async def scenario(owner: Owner) -> None:
        async with await owner.connect() as everything, await owner.connect() as some:
            await owner.create(everything, SCOPE)
            await some.next_event()
            await everything.invoke(
                SCOPE, "eth_subscribe", "logs", {"topics": [[None]]}
            )
            to_bob = "0x" + BOB.address.rjust(32, b"\0").hex()
            wanted = {
                "address": ["0x" + token.hex()],
                "topics": ["0x" + TRANSFER.hex(), None, [to_bob]],
            }
            await some.invoke(SCOPE, "eth_subscribe", "logs", wanted)
            trunk.send(ALICE, token, data=transfer(BOB.address, 5))
            trunk.send(ALICE, token, data=transfer(ALICE.address, 6))
            first = trunk.block()
            trunk.send(ALICE, token, data=transfer(BOB.address, 7))
            second = trunk.block()
            await bring([first, second])
            found = await results(everything, 3)
            assert [int(log["data"], 16) for log in found] == [5, 6, 7]
            assert [log["logIndex"] for log in found] == ["0x0", "0x1", "0x0"]
            assert found[2]["blockHash"] == "0x" + second.header.hash.hex()
            hashes = [t.hash for t in (*first.transactions, *second.transactions)]
            for log, transaction_hash in zip(found, hashes, strict=True):
                asked = ["0x" + transaction_hash.hex()]
                receipt = await some.invoke(SCOPE, "eth_getTransactionReceipt", *asked)
                assert receipt["logs"] == [log]
            assert await results(some, 2) == [found[0], found[2]]
            await nothing_comes(some, 0.2)

    with live_service(workers=2) as live:
        run(scenario(Owner(live.base_url)))


def test_a_reorganisation_is_reported_from_the_fork_point_on(
    trunk: ChainBuilder,
) -> None:
    token = trunk.token  # type: ignore[attr-defined]
    left, right = trunk.fork(), trunk.fork()
    for amount in (1, 2):
        left.send(ALICE, token, data=transfer(BOB.address, amount))
        left.block()
    for amount in (11, 12, 13):
        right.send(ALICE, token, data=transfer(BOB.address, amount))
        right.block()

    async def scenario(owner: Owner) -> None:
        async with await owner.connect() as heads, await owner.connect() as logs:
            await owner.create(heads, SCOPE)
            await logs.next_event()
            await heads.invoke(SCOPE, "eth_subscribe", "newHeads")
            await logs.invoke(SCOPE, "eth_subscribe", "logs")
            await bring(left.blocks[1:])
            await results(heads, 2)
            await results(logs, 2)
            await bring(right.blocks[1:])
            found = await results(heads, 3)
            expected = ["0x" + block.header.hash.hex() for block in right.blocks[1:]]
            assert [head["hash"] for head in found] == expected
            told = [
                (log["removed"], int(log["data"], 16)) for log in await results(logs, 5)
            ]
            assert told == [(True, 2), (True, 1), (False, 11), (False, 12), (False, 13)]

    with live_service(workers=2) as live:
        run(scenario(Owner(live.base_url)))


def test_blocks_of_an_outage_are_reported_after_it(trunk: ChainBuilder) -> None:
    """All of the service's connections to the database are cut."""

    def cut_all() -> int:
        with chains.importer_connection() as connection:
            found = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = 'portcullis' AND datname = current_database()"
                " AND pid <> pg_backend_pid()"
            ).fetchone()
        assert found is not None
        return int(found[0])

    async def scenario(owner: Owner) -> None:
        async with await owner.connect() as client:
            await owner.create(client, SCOPE)
            await client.invoke(SCOPE, "eth_subscribe", "newHeads")
            blocks = [trunk.block() for _ in range(6)]
            await bring(blocks[:2])
            assert await orm(cut_all) > 0
            await bring(blocks[2:4])
            await bring(blocks[4:])
            found = await results(client, 6)
            expected = ["0x" + block.header.hash.hex() for block in blocks]
            assert [head["hash"] for head in found] == expected
            await nothing_comes(client)

    with live_service(may_crash=True) as live:
        run(scenario(Owner(live.base_url)))


def test_a_killed_process_takes_its_own_sockets_alone(trunk: ChainBuilder) -> None:
    async def scenario(owner: Owner, pids: list[int]) -> None:
        clients = []
        sockets = LiveSocket.objects.filter(dapp=owner.dapp)
        while await orm(sockets.values("process").distinct().count) < len(pids):
            clients.append(await owner.connect())
        await owner.create(clients[0], SCOPE)
        for client in clients[1:]:
            await client.next_event()
        for client in clients:
            await client.invoke(SCOPE, "eth_subscribe", "newHeads")
        os.kill(pids[0], signal.SIGKILL)
        await bring([trunk.block()])
        alive = 0
        for client in clients:
            try:
                await results(client, 1)
                alive += 1
            except Disconnected as error:
                assert error.code == 1006
            await client.close()
        assert 0 < alive < len(clients)

    with live_service(workers=2) as live:
        run(scenario(Owner(live.base_url), live.server.pids))
