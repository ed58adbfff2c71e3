"""`$/cancelRequest`: a dapp withdraws a request that waits for the user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.coroutines import scenario
from tests.support.dapps import Owner, exchange, orm
from tests.support.signing import add_key
from tests.support.waiting import in_time, until
from tests.support.wallet import M0, UNAUTHORIZED
from wallets.models import CREATE_SESSION, ConsentRequest, RequestState, Session

ONE = {"optionalScopes": {"eip155:1": M0}}
REJECTED = {"code": 4001, "message": "User rejected the request."}


def call(number: object, method: str, params: object) -> str:
    members = {"id": number, "method": method, "params": params}
    return json.dumps({"jsonrpc": "2.0", **members})


def cancellation(number: object) -> str:
    params = {"id": number}
    return json.dumps({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})


async def received(raw: Any) -> Any:
    return json.loads(await in_time(raw.recv()))


@pytest.mark.parametrize("number", [7, "seven"])
@scenario
async def test_request_for_a_session_is_withdrawn(owner: Owner, number: object) -> None:
    async with owner.raw() as raw:
        await raw.send(call(number, "wallet_createSession", ONE))
        await owner.until_pending()
        await raw.send(cancellation(number))
        answer = await received(raw)
        assert (answer["id"], answer["error"]) == (number, REJECTED)
        request = await orm(ConsentRequest.objects.get, dapp=owner.dapp)
        assert request.state == RequestState.WITHDRAWN
        # The next request is not rejected because of a pending one.
        await raw.send(call(8, "wallet_createSession", ONE))
        await owner.until_pending()
        await orm(owner.approve)
        assert (await received(raw))["result"]["sessionScopes"]


@scenario
async def test_other_requests_of_the_socket_stay(owner: Owner) -> None:
    key = await orm(add_key, owner.user)
    async with owner.raw() as raw:
        await raw.send(call(1, "wallet_createSession", ONE))
        await owner.until_pending()
        await orm(owner.approve, addresses=[key.address])
        await received(raw)
        request = {"method": "personal_sign", "params": ["0x48", key.address]}
        invoked = {"scope": "eip155:1", "request": request}
        await raw.send(call(2, "wallet_invokeMethod", invoked))
        await owner.until_pending()
        first = await orm(owner.pending)
        await raw.send(call(3, "wallet_createSession", ONE))
        pending = ConsentRequest.objects.pending().filter(dapp=owner.dapp)
        await until(lambda: orm(pending.filter(method=CREATE_SESSION).exists))
        await raw.send(cancellation(3))
        assert (await received(raw))["id"] == 3
        assert (await orm(owner.pending)).pk == first.pk
        await raw.send(cancellation(2))
        assert (await received(raw))["error"] == REJECTED


@scenario
async def test_decided_and_unknown_calls_are_not_cancelled(owner: Owner) -> None:
    async with owner.raw() as raw:
        await raw.send(call(1, "wallet_createSession", ONE))
        await owner.until_pending()
        for other in (2, "1", None, True, [1]):
            await raw.send(cancellation(other))
        await raw.send(json.dumps({"jsonrpc": "2.0", "method": "$/cancelRequest"}))
        assert await exchange(raw, call(5, "wallet_getSession", {}))
        await orm(owner.approve)
        assert (await received(raw))["result"]["sessionScopes"]
        await raw.send(cancellation(1))
        assert await exchange(raw, call(6, "wallet_getSession", {}))
        assert (await orm(Session.objects.get, dapp=owner.dapp)).scopes


@scenario
async def test_change_of_the_session_is_no_cancellation(owner: Owner) -> None:
    """A request that the wallet itself has withdrawn still results in error 4100."""
    key = await orm(add_key, owner.user)
    async with await owner.connect() as client, owner.raw() as raw:
        await owner.granted(client, ONE, addresses=[key.address])
        await received(raw)  # the session that the other socket has changed
        request = {"method": "personal_sign", "params": ["0x48", key.address]}
        invoked = {"scope": "eip155:1", "request": request}
        await raw.send(call(2, "wallet_invokeMethod", invoked))
        await owner.until_pending()
        await orm(owner.revoke)
        frames = [await received(raw), await received(raw)]
        (error,) = [frame["error"] for frame in frames if "error" in frame]
        assert (error["code"], error["message"]) == UNAUTHORIZED
