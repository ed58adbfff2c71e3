"""A dapp's socket, from the handshake to its end, over a server of two processes."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from contextlib import suppress

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.coroutines import run, scenario
from tests.support.dapps import Owner, case, exchange, orm
from tests.support.live import Live
from tests.support.waiting import in_time, until
from tests.support.wallet import BY_USER, M0, UNAUTHORIZED
from wallets.client import CallFailed
from wallets.models import ConsentRequest, DappKind, RequestState
from wallets.services.dapps import disconnect_dapp
from wallets.services.pairing import redeem_page_code, start_page_pairing
from wallets.services.presence import MAX_SOCKETS
from wallets.sockets import limits

EMPTY = {"sessionScopes": {}, "sessionProperties": {}}
VERIFIER = "v" * 43
CHALLENGE = "7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM"
PAGE = "https://dapp.example"


def get_session(number: object, **members: object) -> dict[str, object]:
    call = {"jsonrpc": "2.0", "id": number, "method": "wallet_getSession"}
    return {**call, **members}


# Handshake


async def status(url: str, **options: object) -> int:
    try:
        async with open_socket(url, **options):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


@scenario
async def test_a_socket_opens_for_a_good_token_and_for_nothing_else(
    owner: Owner,
) -> None:
    url, bearer = owner.url, {"Authorization": f"Bearer {owner.token}"}
    cookie = {"Cookie": f"sessionid={owner.token}"}
    wrong = {"Authorization": "Bearer " + "x" * 43}
    assert await status(url) == 401
    assert await status(url, additional_headers=cookie) == 401
    assert await status(f"{url}?token={owner.token}") == 401
    assert await status(url, additional_headers=wrong) == 403
    assert await status(url, additional_headers={"Authorization": "Bearer x"}) == 403
    assert await status(url, additional_headers=bearer, origin=PAGE) == 403
    both = [f"token.{owner.token}", f"token.{'x' * 43}"]
    assert await status(url, subprotocols=both) == 403
    assert await status(url, additional_headers=bearer) == 101
    assert await status(url + "/more", additional_headers=bearer) == 403


@scenario
async def test_a_pages_token_is_good_with_its_origin_alone(owner: Owner) -> None:
    code = await orm(
        start_page_pairing, user=owner.user, origin=PAGE, challenge=CHALLENGE
    )
    issued = await orm(
        redeem_page_code, code=code, verifier=VERIFIER, origin=PAGE, cause=BY_USER
    )
    assert issued.token.dapp.kind == DappKind.WEB
    names = ["multichain.v1", f"token.{issued.secret}"]
    for origin, expected in [(None, 403), (PAGE + ":8443", 403), (PAGE, 101)]:
        found = await status(owner.url, subprotocols=names, origin=origin)
        assert found == expected
    async with open_socket(owner.url, subprotocols=names, origin=PAGE) as socket:
        assert socket.subprotocol == "multichain.v1"
        assert (await exchange(socket, get_session(1)))["result"] == EMPTY


def test_a_dapp_has_no_more_sockets_than_allowed_over_all_processes(live: Live) -> None:
    owner = Owner(live.base_url)

    async def scenario() -> None:
        headers = {"Authorization": f"Bearer {owner.token}"}
        tries = [
            open_socket(owner.url, additional_headers=headers)
            for _ in range(MAX_SOCKETS + 10)
        ]
        found = await asyncio.gather(*tries, return_exceptions=True)
        opened = [one for one in found if isinstance(one, ClientConnection)]
        refused = [one for one in found if isinstance(one, InvalidStatus)]
        assert (len(opened), len(refused)) == (MAX_SOCKETS, 10)
        assert {one.response.status_code for one in refused} == {429}
        for held in opened:
            await held.close()

        async def is_let_in() -> bool:
            return await status(owner.url, additional_headers=headers) == 101

        await until(is_let_in)

    run(scenario())


# Frames


@pytest.mark.parametrize(
    ("frame", "code", "number"),
    [
        case(1, "not json", -32700, None),
        case(2, "42", -32600, None),
        case(2, '"x"', -32600, None),
        case(3, '{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        case(4, '{"id":1,"method":"wallet_getSession"}', -32600, 1),
        case(
            6, '{"jsonrpc":"2.0","id":null,"method":"wallet_getSession"}', -32600, None
        ),
        case(
            6, '{"jsonrpc":"2.0","id":true,"method":"wallet_getSession"}', -32600, None
        ),
        case(6, '{"jsonrpc":"2.0","id":{},"method":"wallet_getSession"}', -32600, None),
        case(8, '{"jsonrpc":"2.0","id":7,"method":"eth_chainId"}', -32601, 7),
        case(9, '{"jsonrpc":"2.0","id":7,"method":"wallet_notify"}', -32601, 7),
        case(9, '{"jsonrpc":"2.0","id":7,"method":"wallet_sessionChanged"}', -32601, 7),
        case(10, "[]", -32600, None),
        case(21, '{"jsonrpc":"2.0","id":7,"method":"wallet_createSession"}', -32602, 7),
    ],
)
@scenario
async def test_what_is_no_good_call_gets_its_error(
    owner: Owner, frame: str, code: int, number: object
) -> None:
    async with owner.raw() as socket:
        found = await exchange(socket, frame)
        assert (found["id"], found["error"]["code"]) == (number, code)
        if code == -32601:
            assert found["error"]["data"] == {"method": json.loads(frame)["method"]}
        assert (await exchange(socket, get_session(2)))["result"] == EMPTY


@pytest.mark.case(5)
@pytest.mark.parametrize("number", ["abc-1", "", 0, -3, 2**32, 1.5])
@scenario
async def test_an_id_comes_back_as_it_was_sent(owner: Owner, number: object) -> None:
    async with owner.raw() as socket:
        found = await exchange(socket, get_session(number))
        assert found == {"jsonrpc": "2.0", "id": number, "result": EMPTY}


@pytest.mark.case(7)
@scenario
async def test_a_call_without_id_is_not_answered(owner: Owner) -> None:
    async with owner.raw() as socket:
        silent = {"jsonrpc": "2.0", "method": "wallet_revokeSession"}
        await socket.send(json.dumps(silent))
        await socket.send(json.dumps([silent, silent]))
        assert (await exchange(socket, get_session(2)))["id"] == 2


@pytest.mark.case(11)
@scenario
async def test_a_batch_is_answered_as_one_array(owner: Owner) -> None:
    async with owner.raw() as socket:
        revoke = get_session("r", method="wallet_revokeSession")
        ask = get_session(3, method="wallet_createSession")
        batch = [get_session(1), revoke, get_session(1), ask, 5]
        answers = await exchange(socket, batch)
        assert len(answers) == 5
        found = {
            (answer["id"], answer.get("error", {}).get("code")) for answer in answers
        }
        assert found == {
            (1, None),
            ("r", None),
            (1, -32600),
            (3, -32600),
            (None, -32600),
        }
        many = [get_session(n) for n in range(limits.MAX_BATCH_CALLS + 1)]
        assert (await exchange(socket, many))["error"]["code"] == -32600


@pytest.mark.case(13)
@scenario
async def test_frames_that_are_no_text_or_too_long_close_the_socket(
    owner: Owner,
) -> None:
    for frame, code in [(b"{}", 1003), ("x" * (2**20 + 1), 1009)]:
        async with owner.raw() as socket:
            # A long frame is rejected because of its header, before its end arrives.
            with pytest.raises(ConnectionClosed):
                await socket.send(frame)
                await socket.recv()
            assert socket.close_code == code


@scenario
async def test_a_flood_is_refused_and_ends_with_the_socket(owner: Owner) -> None:
    calm = await owner.connect()
    async with owner.raw() as socket:
        frame = json.dumps(get_session(1, method="eth_chainId"))
        codes = []
        try:
            for _ in range(2000):
                await socket.send(frame)
            while True:
                codes.append(json.loads(await socket.recv())["error"])
        except ConnectionClosed:
            pass
        assert socket.close_code == 4429
    refused = [error for error in codes if error["code"] == -32005]
    assert all(error["data"]["retryAfterMs"] > 0 for error in refused)
    assert await calm.call("wallet_getSession") == EMPTY
    await calm.close()


# Calls


@scenario
async def test_a_session_is_asked_for_used_and_revoked(owner: Owner) -> None:
    async with await owner.connect() as client:
        with pytest.raises(CallFailed) as failed:
            await client.invoke("eip155:1", "eth_chainId")
        assert (failed.value.code, failed.value.message) == UNAUTHORIZED
        created = await owner.create(client, "eip155:1", "eip155:137")
        assert set(created["sessionScopes"]) == {"eip155:1", "eip155:137"}
        assert await client.call("wallet_getSession", []) == created
        both = await asyncio.gather(
            client.invoke("eip155:1", "eth_chainId"),
            client.invoke("eip155:137", "eth_chainId"),
        )
        assert both == ["0x1", "0x89"]
        async with await owner.connect() as other:
            assert await other.call("wallet_getSession") == created
        assert await client.call("wallet_revokeSession", {}) is True
        assert await client.call("wallet_getSession") == EMPTY
        with pytest.raises(CallFailed):
            await client.invoke("eip155:1", "eth_chainId")


@scenario
async def test_a_rejected_request_gets_an_error(owner: Owner) -> None:
    async with await owner.connect() as client:
        wanted = {"optionalScopes": {"eip155:1": M0}}
        call = asyncio.create_task(client.call("wallet_createSession", wanted))
        await owner.until_pending()
        with pytest.raises(CallFailed) as second:
            await client.call("wallet_createSession", wanted)
        assert second.value.code == -32002
        await orm(owner.reject)
        with pytest.raises(CallFailed) as rejected:
            await call
        assert rejected.value.code == 4001


@pytest.mark.case(12)
@scenario
async def test_an_id_is_taken_while_its_call_is_under_way(owner: Owner) -> None:
    async with owner.raw() as socket:
        wanted = {"optionalScopes": {"eip155:1": M0}}
        ask = get_session(1, method="wallet_createSession", params=wanted)
        await socket.send(json.dumps(ask))
        await owner.until_pending()
        assert (await exchange(socket, get_session(1)))["error"]["code"] == -32600
        await orm(owner.approve)
        answer = json.loads(await socket.recv())
        assert list(answer["result"]["sessionScopes"]) == ["eip155:1"]
        assert "result" in await exchange(socket, get_session(1))


@scenario
async def test_a_request_is_withdrawn_when_its_socket_goes(owner: Owner) -> None:
    client = await owner.connect()
    wanted = {"optionalScopes": {"eip155:1": M0}}
    call = asyncio.create_task(client.call("wallet_createSession", wanted))
    await owner.until_pending()
    await client.close()
    await asyncio.gather(call, return_exceptions=True)
    requests = ConsentRequest.objects.filter(dapp=owner.dapp)
    withdrawn = requests.filter(state=RequestState.WITHDRAWN)
    await until(lambda: orm(withdrawn.exists))
    assert await orm(requests.count) == 1


@scenario
async def test_a_disconnected_dapp_loses_its_sockets_in_all_processes(
    owner: Owner,
) -> None:
    clients = [await owner.connect() for _ in range(8)]
    await orm(disconnect_dapp, dapp=owner.dapp, cause=BY_USER)
    for client in clients:
        await in_time(client.socket.wait_closed())
        assert client.socket.close_code == 4401
        await client.close()
    bearer = {"Authorization": f"Bearer {owner.token}"}
    assert await status(owner.url, additional_headers=bearer) == 403


# Readers that do not read


@scenario
async def test_a_client_that_does_not_read_is_disconnected_and_delays_no_others(
    owner: Owner,
) -> None:
    """A client makes calls without reading. Another client is not affected."""
    async with await owner.connect() as calm, owner.raw() as lazy:
        await owner.create(calm, "eip155:1")
        lazy.transport.pause_reading()
        # The system may keep 33 MB for a client that does not read.
        buffered = socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16
        lazy.transport.get_extra_info("socket").setsockopt(*buffered)
        name = "x" * 500_000  # each response contains this id
        with suppress(OSError, ConnectionClosed):
            for number in itertools.count():
                await in_time(lazy.send(json.dumps(get_session(f"{number}{name}"))))
                if number % 10 == 0:
                    assert await calm.invoke("eip155:1", "eth_chainId") == "0x1"
        # The close frame does not arrive, because unread data precedes it.
        lazy.transport.resume_reading()
        with pytest.raises(ConnectionClosed):
            while True:
                await in_time(lazy.recv())
        assert await calm.invoke("eip155:1", "eth_chainId") == "0x1"
