"""Cases 126–133: authentication of sockets, decisions of requests, and their ends.

Case 129 is one of `tests.wallets.test_inbox_socket`, case 132 of `pages.test_browser`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone
from websockets.exceptions import InvalidStatus

from tests.support import web
from tests.support.coroutines import scenario
from tests.support.dapps import (
    Owner,
    failure,
    next_event,
    orm,
    page_token,
    sockets_apart,
)
from tests.support.live import Live
from tests.support.pages import Visit, boxes
from tests.support.waiting import PATIENCE_SECONDS
from tests.support.wallet import M0
from wallets.client import Disconnected, WalletClient, connect
from wallets.models import ConsentRequest, FailedPairing, Pairing, RequestState
from wallets.services.pairing import MAX_GUESSES, start_program_pairing

P, Q = "https://p.example", "https://q.example"
ONE = {"optionalScopes": {"eip155:1": M0}}


@pytest.fixture
def visit(live: Live, owner: Owner) -> Iterator[Visit]:
    """Return the browser of the user U."""
    found = Visit(live.base_url, owner.user)
    yield found
    found.close()


async def status(url: str, token: str, **options: Any) -> int:
    """Return the HTTP status of a handshake."""
    try:
        client = await connect(url, token, **options)
    except InvalidStatus as error:
        return error.response.status_code
    await client.close()
    return 101


@pytest.mark.case(126)
@scenario
async def test_log_in_opens_no_socket_of_a_dapp(owner: Owner, visit: Visit) -> None:
    # The redirect leads to the log-in.
    assert (await orm(visit.get, "/wallet/")).status_code == 200
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Cookie": f"sessionid={visit.session}",
    }
    url = owner.url.replace("ws", "http", 1)
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
        for origin in ({}, {"Origin": owner.url[:-8].replace("ws", "http", 1)}):
            response = await client.get(url, headers={**upgrade, **origin})
            assert response.status_code == 401


@pytest.mark.case(127)
@scenario
async def test_pages_token_is_good_with_its_own_origin_alone(owner: Owner) -> None:
    token = await orm(page_token, owner.user, P)
    for in_subprotocol in (True, False):
        options: dict[str, Any] = {"in_subprotocol": in_subprotocol}
        for origin in (Q, f"{P}:8443", "http://p.example", "null", None):
            assert await status(owner.url, token, origin=origin, **options) == 403
        assert await status(owner.url, token, origin=P, **options) == 101


@pytest.mark.case(128)
@scenario
async def test_programs_token_is_good_without_origin_alone(owner: Owner) -> None:
    own = owner.url[: -len("/ws/dapp")].replace("ws", "http", 1)
    for origin in (P, own, "null"):
        assert await status(owner.url, owner.token, origin=origin) == 403
    assert await status(owner.url, owner.token) == 101


@pytest.mark.case(130)
def test_pairing_code_is_good_once_for_five_minutes_and_not_after_guesses(
    live: Live, owner: Owner
) -> None:
    FailedPairing.objects.all().delete()

    def exchanged(code: str) -> int:
        address = f"{live.base_url}/wallet/token"
        return web.post(address, data={"code": code}).status_code

    used = start_program_pairing(user=owner.user, label="once")
    assert [exchanged(used), exchanged(used)] == [200, 400]
    late = start_program_pairing(user=owner.user, label="late")
    issued = Pairing.objects.get(label="late")
    assert issued.expires_at - issued.created_at <= timedelta(minutes=5, seconds=1)
    Pairing.objects.filter(label="late").update(expires_at=timezone.now())
    assert exchanged(late) == 400
    FailedPairing.objects.all().delete()
    right = start_program_pairing(user=owner.user, label="guessed")
    for _ in range(MAX_GUESSES):
        assert exchanged("BBBB-BBBB") == 400
    assert exchanged(right) == 400
    FailedPairing.objects.all().delete()
    assert exchanged(right) == 200


@pytest.mark.case(131)
@scenario
async def test_consent_is_the_users_own_with_token_and_digest(
    live: Live, owner: Owner, visit: Visit
) -> None:
    v = await orm(Owner, live.base_url)
    other = await orm(Visit, live.base_url, v.user)
    async with await owner.connect() as s1:
        call = await owner.asking(s1, ONE)
        request = await orm(owner.pending)
        path = f"/wallet/requests/{request.pk}"
        seen = boxes((await orm(visit.get, path)).text)
        yes = {**seen, "decision": "approve"}
        assert await orm(visit.post, path, token="", **yes) == 403
        assert await orm(visit.post, path, token="x" * 64, **yes) == 403
        await orm(other.get, "/wallet/accounts")
        assert await orm(other.post, path, **yes) == 404
        stale = {**yes, "digest": "0" * 64}
        assert await orm(visit.post, path, **stale) == 409
        assert not call.done()
        assert (await s1.call("wallet_getSession"))["sessionScopes"] == {}
        found = await orm(ConsentRequest.objects.get, pk=request.pk)
        assert found.state == RequestState.PENDING
        assert await orm(visit.post, path, **yes) == 302
        assert list((await call)["sessionScopes"]) == ["eip155:1"]
        assert await orm(visit.post, path, **yes) == 409
    other.close()


@pytest.mark.case(71)
@scenario
async def test_without_an_account_nothing_is_approved_and_the_request_waits(
    owner: Owner, visit: Visit
) -> None:
    async with await owner.connect() as s1:
        call = await owner.asking(s1, ONE)
        path = f"/wallet/requests/{(await orm(owner.pending)).pk}"
        yes = {**boxes((await orm(visit.get, path)).text), "decision": "approve"}
        none = {name: value for name, value in yes.items() if name != "account"}
        assert await orm(visit.post, path, **none) == 400
        assert (await orm(owner.pending)).state == RequestState.PENDING
        assert not call.done()
        assert await orm(visit.post, path, **yes) == 302
        assert (await call)["sessionScopes"]["eip155:1"]["accounts"]


@pytest.mark.parametrize("how", ["disconnect all", "password change"])
@pytest.mark.case(133)
@scenario
async def test_token_socket_and_session_end_together(
    owner: Owner, visit: Visit, how: str
) -> None:
    def end() -> None:
        if how == "disconnect all":
            visit.get("/wallet/connections")
            assert visit.post("/wallet/connections/disconnect") == 302
        else:
            owner.user.set_password("another password")
            owner.user.save()

    async with sockets_apart(owner) as (s1, s2):
        await owner.create(s1)
        await next_event(s2)
        assert (await s1.invoke("eip155:1", "eth_subscribe", "newHeads"))[:2] == "0x"
        await orm(end)
        codes = await asyncio.gather(closed(s1), closed(s2))
        assert codes == [4401, 4401]
    assert await status(owner.url, owner.token) == 403
    token = await orm(owner.new_token, "later")
    async with await owner.connect(token=token) as fresh:
        error = await failure(fresh.invoke("eip155:1", "eth_chainId"))
        assert error.code == 4100


async def closed(client: WalletClient) -> int:
    """Return the code with which a socket is closed, and ignore frames before it."""
    while True:
        try:
            event = await next_event(client)
        except Disconnected as end:
            return end.code
        assert event["method"] == "wallet_sessionChanged"
