"""WALLETS_ECHO_TO_REQUESTER: a socket receives events of its own calls, as in MetaMask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.coroutines import scenario
from tests.support.dapps import Owner, orm
from tests.support.live import Live, live_service
from tests.support.waiting import in_time
from tests.support.wallet import M0, served_chains
from wallets import internal_key

BOTH = {"optionalScopes": {"eip155:1": M0, "eip155:137": M0}}


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    served_chains()
    internal_key.ensure()
    with live_service(env={"WALLETS_ECHO_TO_REQUESTER": "1"}) as live:
        yield live


async def frames(socket: Any, count: int) -> list[Any]:
    return [json.loads(await in_time(socket.recv())) for _ in range(count)]


async def send(socket: Any, number: int, method: str, params: object) -> None:
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    await socket.send(json.dumps(frame))


@scenario
async def test_event_comes_before_the_answer_and_only_for_a_change(
    owner: Owner,
) -> None:
    async with owner.raw() as socket:
        await send(socket, 1, "wallet_createSession", BOTH)
        await owner.until_pending()
        await orm(owner.approve)
        event, answer = await frames(socket, 2)
        assert event["method"] == "wallet_sessionChanged"
        scopes = answer["result"]["sessionScopes"]
        assert event["params"] == {"sessionScopes": scopes}
        await send(socket, 2, "wallet_getSession", {})
        (answer,) = await frames(socket, 1)
        assert answer["result"]["sessionScopes"] == scopes
        await send(socket, 3, "wallet_revokeSession", {"scopes": ["eip155:1"]})
        event, answer = await frames(socket, 2)
        assert list(event["params"]["sessionScopes"]) == ["eip155:137"]
        assert answer["result"] is True
        await send(socket, 4, "wallet_revokeSession", {"scopes": ["eip155:1"]})
        (answer,) = await frames(socket, 1)
        assert (answer["id"], answer["result"]) == (4, True)
