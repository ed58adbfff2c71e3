"""Floods of requests by a dapp: other clients are not affected, nothing is granted."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from tests.support.coroutines import scenario
from tests.support.dapps import Owner, exchange, orm, sockets_apart
from tests.support.growing import GrowingChain, next_head, subscribed
from tests.support.live import Live, live_service
from tests.support.waiting import PATIENCE_SECONDS, in_time, until
from tests.support.wallet import M0, served_chains
from wallets import internal_key
from wallets.client import CallFailed
from wallets.models import ConsentRequest, DappToken, FailedPairing, LiveSocket, Session
from wallets.services.pairing import MAX_GUESSES, start_program_pairing
from wallets.services.presence import MAX_SOCKETS

ONE = {"optionalScopes": {"eip155:1": M0}}


@pytest.fixture(scope="module")
def chain(module_db: None) -> GrowingChain:
    served_chains()
    internal_key.ensure()
    return GrowingChain(7)


@pytest.fixture(scope="module")
def live(chain: GrowingChain) -> Iterator[Live]:
    with live_service(workers=2) as live:
        yield live


@pytest.fixture
def owner(live: Live) -> Owner:
    return Owner(live.base_url)


@pytest.fixture
def victim(live: Live) -> Owner:
    """Return another user, who must not be affected."""
    return Owner(live.base_url)


@scenario
async def test_flood_of_requests_fills_one_inbox_with_five(
    owner: Owner, victim: Owner
) -> None:
    """Ten programs of a user make thirty requests each, on sockets of both processes."""
    tokens = await orm(lambda: [owner.new_token(f"bot {n}") for n in range(10)])
    clients = [await owner.connect(token=token) for token in tokens for _ in range(2)]

    async def ask(client: Any) -> int:
        try:
            await client.call("wallet_createSession", ONE)
        except CallFailed as error:
            return error.code
        raise AssertionError("granted")

    asked = [asyncio.create_task(ask(client)) for client in clients for _ in range(15)]
    async with await victim.connect() as calm:
        assert (await victim.granted(calm, ONE))["sessionScopes"]
        assert await calm.invoke("eip155:1", "eth_chainId") == "0x1"
    most = settings.WALLETS_MAX_PENDING
    pending = ConsentRequest.objects.pending().filter(dapp__user=owner.user)
    await until(lambda: sum(not call.done() for call in asked) <= most)
    assert await orm(pending.count) == most
    refused = Counter(call.result() for call in asked if call.done())
    assert set(refused) == {-32002, -32005}
    await asyncio.gather(*(client.close() for client in clients))
    await asyncio.gather(*asked, return_exceptions=True)
    await until(lambda: orm(lambda: not pending.exists()))
    theirs = Session.objects.filter(dapp__user=owner.user)
    assert await orm(lambda: set(theirs.values_list("version", flat=True))) == {0}


@scenario
async def test_flood_of_guesses_pairs_nothing_and_locks_no_other_user_out(
    live: Live, owner: Owner, victim: Owner
) -> None:
    await orm(FailedPairing.objects.all().delete)
    before = await orm(DappToken.objects.count)
    code = await orm(start_program_pairing, user=owner.user, label="late")
    address = f"{live.base_url}/wallet/token"
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
        guesses = [
            http.post(address, data={"code": f"BCDF-{number:04}"})
            for number in range(200)
        ]
        answers = await asyncio.gather(*guesses, victim_goes_on(victim))
        assert {answer.status_code for answer in answers[:-1]} == {400}
        assert (await http.post(address, data={"code": code})).status_code == 400
        elsewhere = {"X-Forwarded-For": "192.0.2.77"}
        paired = await http.post(address, data={"code": code}, headers=elsewhere)
        assert paired.status_code == 200
    assert await orm(DappToken.objects.count) == before + 1
    assert await orm(FailedPairing.objects.count) <= MAX_GUESSES
    await orm(FailedPairing.objects.all().delete)


async def victim_goes_on(victim: Owner) -> None:
    """Create a session and use it, on both processes."""
    async with sockets_apart(victim) as clients:
        await victim.create(clients[0])
        for client in clients:
            assert await client.invoke("eip155:1", "eth_chainId") == "0x1"


# A thousand sockets that never read

DAPPS = 50
ASKED = 8
NAME_BYTES = 30_000


def text_frame(payload: bytes) -> bytes:
    """Return a client's text frame. Its mask is zero, so that the payload is unchanged."""
    size = len(payload)
    assert 125 < size < 2**16
    return b"\x81\xfe" + size.to_bytes(2) + bytes(4) + payload


def upgrade(host: str, *headers: str) -> bytes:
    """Return the request of a handshake."""
    lines = [
        "GET /ws/dapp HTTP/1.1",
        f"Host: {host}",
        *("Connection: Upgrade", "Upgrade: websocket"),
        *("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + "A" * 22 + "=="),
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


class Deaf:
    """A socket whose client never reads, with the smallest buffers."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self._socket.setblocking(False)
        self._address = (host, port)

    async def open(self, token: str) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, self._address)
        host = f"{self._address[0]}:{self._address[1]}"
        start = upgrade(host, f"Authorization: Bearer {token}")
        await loop.sock_sendall(self._socket, start)
        answer = await loop.sock_recv(self._socket, 1024)
        assert b" 101 " in answer, answer

    async def send(self, frames: bytes) -> None:
        with suppress(OSError):  # the server has closed the connection already
            await asyncio.get_running_loop().sock_sendall(self._socket, frames)

    def close(self) -> None:
        self._socket.close()


@scenario
async def test_thousand_sockets_that_never_read_are_cut_off_unnoticed(
    live: Live, owner: Owner, victim: Owner, chain: GrowingChain
) -> None:
    """Each socket requests a quarter of a megabyte, and reads nothing."""
    host, port = live.base_url.removeprefix("http://").split(":")
    tokens = await orm(lambda: [owner.new_token(f"deaf {n}") for n in range(DAPPS)])
    every = tokens * MAX_SOCKETS
    deaf = [Deaf(host, int(port)) for _ in every]
    live_rows = LiveSocket.objects.open().filter(dapp__user=owner.user)
    try:
        for first in range(0, len(every), 100):
            batch = zip(
                deaf[first : first + 100], every[first : first + 100], strict=True
            )
            await asyncio.gather(*(one.open(token) for one, token in batch))
        assert await orm(live_rows.count) == len(every) == 1000
        before = memory(live)
        name = "x" * NAME_BYTES  # each response contains this id
        call = {"jsonrpc": "2.0", "method": "wallet_getSession"}
        frames = b"".join(
            text_frame(json.dumps({**call, "id": f"{n}{name}"}).encode())
            for n in range(ASKED)
        )
        async with sockets_apart(victim) as calm:
            await victim.create(calm[0], chain.scope)
            await calm[1].next_event()
            names = {one: await subscribed(one, chain.scope) for one in calm}
            flood = asyncio.gather(*(one.send(frames) for one in deaf))
            for _ in range(5):
                expected = await chain.grow()
                for one, name in names.items():
                    assert await next_head(one) == (chain.scope, name, expected)
                    assert await one.invoke(chain.scope, "eth_chainId") == "0x7"
            await flood
            while await orm(live_rows.exists):  # the time limit of the scenario applies
                for one in calm:
                    assert await one.invoke(chain.scope, "eth_chainId") == "0x7"
                await asyncio.sleep(0.5)
        assert memory(live) - before < 512 * 2**20
    finally:
        for one in deaf:
            one.close()


def memory(live: Live) -> int:
    """Return the resident bytes of all web processes."""
    pages = [
        int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        for pid in live.server.pids
    ]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


@scenario
async def test_flood_of_frames_costs_its_sender_the_socket(
    owner: Owner, victim: Owner
) -> None:
    """Frames that are not calls, and calls beyond the limit, on sockets of both processes."""
    flood = [json.dumps({"jsonrpc": "2.0", "id": n, "method": "x"}) for n in range(50)]
    flood += ["not json", "[]", "{}", json.dumps([5] * 20)]

    async def send() -> int:
        async with owner.raw() as raw:
            assert await exchange(raw, "{}")
            try:
                for _ in range(40):
                    for frame in flood:
                        await raw.send(frame)
                while True:
                    await raw.recv()
            except Exception:
                return raw.close_code or 0

    sending = asyncio.gather(*(send() for _ in range(8)))
    async with sockets_apart(victim) as calm:
        await victim.create(calm[0])
        while not sending.done():
            for one in calm:
                assert await one.invoke("eip155:1", "eth_chainId") == "0x1"
            await asyncio.wait([sending], timeout=0.1)
    assert set(await sending) <= {4429, 4008}


@scenario
async def test_flood_of_tiny_frames_and_chunks_delays_nobody(
    live: Live, owner: Owner, victim: Owner
) -> None:
    """Three megabytes on each of 16 connections. Half of them have no valid key."""
    host = live.base_url.removeprefix("http://")
    bearer = f"Authorization: Bearer {await orm(owner.new_token, 'flood')}"
    post = f"POST /v3/{'0' * 32} HTTP/1.1\r\nHost: {host}\r\n".encode()
    ping, fragment = b"\x89\x80" + bytes(4), b"\x00\x80" + bytes(4)
    floods = [
        (upgrade(host), b"", ping),
        (upgrade(host, bearer), b"", ping),
        (upgrade(host, bearer), b"\x01\x80" + bytes(4), fragment),
        (post + b"Transfer-Encoding: chunked\r\n\r\n", b"", b"1\r\n \r\n"),
    ]

    async def send(start: bytes, first: bytes, piece: bytes) -> None:
        """Send a flood. A socket ends when the server has closed it."""
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(start)
        with suppress(OSError):
            if start.startswith(b"GET"):
                await reader.read(4096)
            writer.write(first)
            for _ in range(100):
                writer.write(piece * 5_000)
                await writer.drain()
            if start.startswith(b"GET"):
                await reader.read()
        writer.transport.abort()

    pids = live.server.pids
    async with sockets_apart(victim) as calm:
        await victim.create(calm[0])
        await calm[1].next_event()
        sending = asyncio.gather(*(send(*flood) for flood in floods * 4))
        while not sending.done():
            for one in calm:
                assert await one.invoke("eip155:1", "eth_chainId") == "0x1"
            await asyncio.wait([sending], timeout=0.05)
        await sending
        for one in calm:
            assert await one.invoke("eip155:1", "eth_chainId") == "0x1"
    assert live.server.pids == pids


@scenario
async def test_slow_reader_with_many_subscriptions_gets_every_block_of_an_import(
    owner: Owner, chain: GrowingChain
) -> None:
    """The client reads nothing until a hundred blocks are imported."""
    async with owner.raw() as slow:
        async with await owner.connect() as other:
            await owner.create(other, chain.scope)
            # The session, which the other socket has created.
            await in_time(slow.recv())
            request = {"method": "eth_subscribe", "params": ["newHeads"]}
            call = {"jsonrpc": "2.0", "method": "wallet_invokeMethod"}
            params = {"scope": chain.scope, "request": request}
            for number in range(60):
                await slow.send(json.dumps({**call, "id": number, "params": params}))
                assert "result" in json.loads(await in_time(slow.recv()))
            name = await subscribed(other, chain.scope)
            slow.transport.pause_reading()
            hashes = await chain.grow_by(100)
            for expected in hashes:
                assert await next_head(other) == (chain.scope, name, expected)
        slow.transport.resume_reading()
        found: Counter[str] = Counter()
        while found.total() < 60 * len(hashes):
            event = json.loads(await in_time(slow.recv()))
            head = event["params"]["notification"]["params"]["result"]
            found[head["hash"]] += 1
        assert found == dict.fromkeys(hashes, 60)
