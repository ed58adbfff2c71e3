"""The four guarantees of order and delivery, with two processes and lost messages.

`tests.wallets.test_socket_events` tests that eth_subscribe is answered before its first
head, and that no head follows a revocation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.coroutines import scenario
from tests.support.dapps import Owner, next_event, nothing_comes, orm, sockets_apart
from tests.support.growing import GrowingChain, next_head, subscribed
from tests.support.live import Live, live_service
from tests.support.wallet import served_chains
from wallets import internal_key
from wallets.models import Session

ROUNDS = 5


@pytest.fixture(scope="module")
def both(module_db: None) -> tuple[GrowingChain, GrowingChain]:
    served_chains()
    internal_key.ensure()
    return GrowingChain(7), GrowingChain(8)


@pytest.fixture(scope="module")
def live(both: tuple[GrowingChain, GrowingChain]) -> Iterator[Live]:
    with live_service(workers=2) as live:
        yield live


@pytest.fixture
def owner(live: Live) -> Owner:
    return Owner(live.base_url)


@scenario
async def test_grant_is_read_again_before_a_head_is_sent(
    owner: Owner, both: tuple[GrowingChain, GrowingChain]
) -> None:
    """The notification of the change is lost, so that only the rows contain it."""
    seven, _ = both
    async with sockets_apart(owner) as clients:
        await owner.create(clients[0], seven.scope)
        await next_event(clients[1])
        for client in clients:
            await subscribed(client, seven.scope)

        def take_away() -> None:
            session = Session.objects.get(dapp=owner.dapp)
            session.stored_scopes = []
            session.version += 1
            session.changed_by = ""
            session.save()

        await orm(take_away)
        await seven.grow()
        for client in clients:
            event = await next_event(client)
            assert event["method"] == "wallet_sessionChanged"
            assert event["params"] == {"sessionScopes": {}}
            await nothing_comes(client, 0.2)


@scenario
async def test_heads_end_before_the_change_that_ends_them_is_reported(
    owner: Owner, both: tuple[GrowingChain, GrowingChain]
) -> None:
    """Edits race with blocks. Sockets of both processes get events in the same order."""
    seven, eight = both
    for _ in range(ROUNDS):
        async with sockets_apart(owner) as clients:
            await owner.create(clients[0], seven.scope, eight.scope)
            for client in clients:
                await subscribed(client, seven.scope)
                await subscribed(client, eight.scope)
            await asyncio.gather(
                *(chain.grow() for chain in both), orm(owner.edit, eight.scope)
            )
            last = await eight.grow()
            await seven.grow()
            for client in clients:
                assert await heads_after_the_change(client, eight.scope, last) == {
                    eight.scope
                }
                await nothing_comes(client, 0.2)


async def heads_after_the_change(client: object, scope: str, last: str) -> set[str]:
    """Return the scopes of the heads that come after the session has changed."""
    found: set[str] | None = None
    while True:
        event = await next_event(client)  # type: ignore[arg-type]
        if event["method"] == "wallet_sessionChanged":
            if list(event["params"]["sessionScopes"]) == [scope]:
                found = set()
            continue
        if found is not None:
            found.add(event["params"]["scope"])
        head = event["params"]["notification"]["params"]["result"]
        if head["hash"] == last:
            assert found is not None
            return found


@scenario
async def test_answer_that_takes_a_scope_away_comes_after_its_last_head(
    owner: Owner, both: tuple[GrowingChain, GrowingChain]
) -> None:
    """The dapp removes the scope itself, on a socket of either process."""
    seven, _ = both
    for turn in range(ROUNDS):
        async with sockets_apart(owner) as clients:
            await owner.create(clients[0], seven.scope, "eip155:1")
            await next_event(clients[1])
            name = await subscribed(clients[turn % 2], seven.scope)
            growing = asyncio.create_task(seven.grow())
            revoked = {"scopes": [seven.scope]}
            assert await clients[turn % 2].call("wallet_revokeSession", revoked) is True
            before = clients[turn % 2].received.qsize()
            await growing
            await seven.grow()
            for _ in range(before):
                assert (await next_head(clients[turn % 2]))[1] == name
            await nothing_comes(clients[turn % 2])
