"""Connections and subscriptions of upstreams over WebSockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import MethodUnavailable
from tests.nodeapi.upstreams.asking import HEADERS, ask, failing, with_secrets
from tests.support.coroutines import scenario
from tests.support.ports import free_port
from tests.support.upstream_server import (
    PATH,
    UpstreamServer,
    content,
    hold,
    refuse,
    running_upstream,
    status,
)
from tests.support.waiting import in_time, until


@scenario
async def test_calls_over_a_lost_connection_fail_and_the_next_one_reconnects(
    server: UpstreamServer,
):
    server.methods["eth_x"] = "x"
    async with UpstreamClient(server.ws_url, timeout=600) as client:
        assert await client.call("eth_x") == "x"
        server.fault = hold
        calls = [asyncio.create_task(client.call("eth_x")) for _ in range(3)]
        await until(lambda: server.count("eth_x") == 4)
        await asyncio.to_thread(server.drop)
        for call in calls:
            with failing():
                await in_time(call)
        server.fault = None
        assert await client.call("eth_x") == "x"
    assert server.connections == 2


@scenario
async def test_concurrent_calls_share_one_handshake(server: UpstreamServer):
    server.methods["eth_x"] = "x"
    async with UpstreamClient(server.ws_url) as client:
        await asyncio.gather(*(client.call("eth_x") for _ in range(10)))
    assert server.connections == 1


@scenario
async def test_silent_socket_is_detected_by_pings(server: UpstreamServer):
    server.methods["eth_x"] = "x"
    client = UpstreamClient(server.ws_url, timeout=600, ping_seconds=1)
    async with client:
        await client.call("eth_x")
        await asyncio.to_thread(server.go_silent)
        with failing() as caught:
            await client.call("eth_x")
        assert caught.value.reason == "a ping was not answered"
        assert await client.call("eth_x") == "x"


def test_refused_handshake_is_unavailable(server: UpstreamServer):
    server.handshake = (429, {"Retry-After": "9"})
    with failing() as caught:
        ask(with_secrets(server.ws_url), "eth_x")
    assert (caught.value.status, caught.value.retry_after) == (429, 9.0)


def test_no_connection_is_reported_as_unreachable(server: UpstreamServer, scheme: str):
    with failing() as caught:
        ask(f"{scheme}://127.0.0.1:{free_port()}{PATH}", "eth_x")
    assert caught.value.is_unreachable
    server.fault, server.handshake = status(502), (502, {})
    with failing() as caught:
        ask(server.url(scheme), "eth_x")
    assert not caught.value.is_unreachable


def test_redirects_are_not_followed(server: UpstreamServer, scheme: str):
    server.fault = status(307, Location=server.http_url)
    with running_upstream() as other:
        server.handshake = (307, {"Location": other.ws_url})
        server.fault = status(307, Location=other.http_url)
        with failing() as caught:
            ask(server.url(scheme), "eth_x", headers=HEADERS)
        assert caught.value.status == 307
        assert other.connections == 0


def test_too_long_message_closes_the_connection(
    server: UpstreamServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("nodeapi.upstreams.websocket.MAX_NOTIFICATION_BYTES", 1000)
    server.methods["eth_x"] = "x" * 1000
    with failing() as caught:
        ask(server.ws_url, "eth_x", max_bytes=900)
    assert caught.value.reason == "a message is too long"


@scenario
async def test_closing_the_client_ends_its_calls(server: UpstreamServer, scheme: str):
    server.fault = hold
    client = UpstreamClient(server.url(scheme), timeout=600)
    call = asyncio.create_task(client.call("eth_x"))
    await until(lambda: server.count("eth_x") == 1)
    await client.close()
    with failing():
        await call


# Subscriptions


@scenario
async def test_heads_are_delivered_over_every_connection(server: UpstreamServer):
    found: list[Any] = []
    async with UpstreamClient(server.ws_url) as client:
        task = asyncio.create_task(client.subscribe_heads(found.append))
        for number in range(3):
            await until(lambda: any(server.sockets.values()))
            await asyncio.to_thread(server.notify, "newHeads", {"number": number})
            await until(lambda number=number: {"number": number} in found)
            await asyncio.to_thread(server.drop)
            await until(lambda: not server.sockets)
        task.cancel()
        await asyncio.wait([task])
    assert found == [{"number": 0}, {"number": 1}, {"number": 2}]


@scenario
async def test_first_notification_may_follow_the_response_at_once(
    server: UpstreamServer,
):
    found: list[Any] = []
    notification = (
        '{"jsonrpc": "2.0", "method": "eth_subscription",'
        ' "params": {"subscription": "0xab", "result": 1}}'
    )
    async with UpstreamClient(server.ws_url) as client:

        async def subscribe() -> None:
            await client.subscribe("newPendingTransactions", callback=found.append)

        server.fault = hold
        server.methods["eth_subscribe"] = "0xab"
        task = asyncio.create_task(subscribe())
        await until(lambda: server.count("eth_subscribe") == 1)
        await asyncio.to_thread(server.release_before, notification)
        await until(lambda: found == [1])
        task.cancel()
        await asyncio.wait([task])
    assert ("eth_subscribe", ["newPendingTransactions"]) in server.calls


@scenario
async def test_cancelled_subscription_ends(server: UpstreamServer):
    found: list[Any] = []
    server.methods["eth_x"] = "x"
    async with UpstreamClient(server.ws_url) as client:
        task = asyncio.create_task(client.subscribe_heads(found.append))
        await until(lambda: any(server.sockets.values()))
        task.cancel()
        await asyncio.wait([task])
        await until(lambda: server.count("eth_unsubscribe") == 1)
        assert await client.call("eth_x") == "x"  # over the same connection
    assert server.connections == 1


@scenario
async def test_notifications_of_no_subscription_are_ignored(server: UpstreamServer):
    server.methods["eth_x"] = "x"
    async with UpstreamClient(server.ws_url) as client:
        await client.call("eth_x")
        for params in (
            "5",
            "null",
            '{"subscription": []}',
            '{"subscription": "1"}',
        ):
            text = f'{{"method": "eth_subscription", "params": {params}}}'
            await asyncio.to_thread(server.send, text)
        assert await client.call("eth_x") == "x"
    assert server.connections == 1


@scenario
async def test_subscription_is_repeated_after_a_silence(server: UpstreamServer):
    client = UpstreamClient(server.ws_url, ping_seconds=1)
    async with client:
        task = asyncio.create_task(client.subscribe_heads(lambda _: None))
        await until(lambda: any(server.sockets.values()))
        await asyncio.to_thread(server.go_silent)
        await until(lambda: server.count("eth_subscribe") >= 2)
        task.cancel()
        await asyncio.wait([task])


@scenario
async def test_subscription_waits_for_an_upstream_that_is_away(server: UpstreamServer):
    server.handshake = (503, {})
    async with UpstreamClient(server.ws_url) as client:
        task = asyncio.create_task(client.subscribe_heads(lambda _: None))
        await until(lambda: server.connections >= 2)
        server.handshake = None
        server.faults.append(content(lambda found: found | {"error": 5}))
        await until(lambda: any(server.sockets.values()))
        await until(lambda: server.count("eth_subscribe") >= 2)
        task.cancel()
        await asyncio.wait([task])


@scenario
async def test_upstream_without_subscriptions(server: UpstreamServer, scheme: str):
    server.methods["eth_subscribe"] = refuse(-32601, "no such method")
    async with UpstreamClient(server.url(scheme)) as client:
        assert client.can_subscribe is (scheme == "ws")
        with pytest.raises(MethodUnavailable):
            await in_time(client.subscribe_heads(lambda _: None))
