from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from nodeapi.upstreams.address import HIDDEN, MAX_DEPTH, tls
from nodeapi.upstreams.client import MAX_BATCH, MAX_CALLS, UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.http import MAX_RETRY_AFTER
from tests.nodeapi.upstreams.asking import (
    HEADERS,
    SECRETS,
    SOON,
    ask,
    assert_no_secret,
    failing,
    with_secrets,
)
from tests.support.certificates import make_certificate
from tests.support.coroutines import scenario
from tests.support.upstream_server import (
    PATH,
    UpstreamServer,
    body,
    content,
    cut,
    hang_up,
    hold,
    refuse,
    running_upstream,
    status,
)
from tests.support.waiting import in_time, loop_turns, until

# Calls


def test_call_returns_the_result(server: UpstreamServer, scheme: str):
    server.methods["eth_add"] = lambda *params: {"params": params}
    found = ask(server.url(scheme), "eth_add", "0x1", [None, {"a": True}])
    assert found == {"params": ["0x1", [None, {"a": True}]]}
    server.methods["eth_nothing"] = None
    assert ask(server.url(scheme), "eth_nothing") is None


@scenario
async def test_connection_is_kept_between_calls(server: UpstreamServer, scheme: str):
    server.methods["eth_chainId"] = "0x1"
    async with UpstreamClient(server.url(scheme)) as client:
        for _ in range(5):
            assert await client.call("eth_chainId") == "0x1"
    assert server.connections == 1


def test_errors_are_passed_on_unchanged(server: UpstreamServer, scheme: str):
    data = {"reason": ["a", 5, None], "long": "x" * 10_000}
    server.methods["eth_call"] = refuse(3, "execution reverted: é", data)
    with pytest.raises(UpstreamError) as caught:
        ask(server.url(scheme), "eth_call")
    error = caught.value
    assert (error.code, error.message, error.data) == (3, "execution reverted: é", data)
    assert not isinstance(error, MethodUnavailable)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32601, "the method debug_x does not exist/is not available"),
        (-32604, "Method not enabled"),
        (-32004, "anything"),
        (-32600, "Unsupported method: debug_getRawBlock on ETH_MAINNET"),
        (-32000, "this method is not supported in your plan"),
        (35, "method is not available on freetier"),
    ],
)
def test_method_that_is_not_offered(server: UpstreamServer, code: int, message: str):
    server.methods["debug_x"] = refuse(code, message)
    with pytest.raises(MethodUnavailable) as caught:
        ask(server.http_url, "debug_x")
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32000, "header not found"),
        (-32602, "invalid argument 0: hex string without 0x prefix"),
        (4444, "pruned history unavailable"),
        (-39001, "Unknown block"),
    ],
)
def test_other_errors_are_not_the_methods(
    server: UpstreamServer, code: int, message: str
):
    server.methods["debug_x"] = refuse(code, message)
    with pytest.raises(UpstreamError) as caught:
        ask(server.http_url, "debug_x")
    assert type(caught.value) is UpstreamError


@pytest.mark.parametrize("code", [-32005, 429])
def test_rate_limit_in_an_error_object(server: UpstreamServer, scheme: str, code: int):
    server.methods["eth_x"] = refuse(code, "limit of " + PATH)
    with failing() as caught:
        ask(server.url(scheme), "eth_x")
    assert "rate limit" in caught.value.reason


def test_secrets_that_an_error_repeats_are_hidden(server: UpstreamServer, scheme: str):
    texts = [f"no {PATH} for user:hunter22 with token-of-ours", {PATH: [PATH, 5]}]
    server.methods["eth_x"] = refuse(-32000, *texts)
    with pytest.raises(UpstreamError) as caught:
        ask(with_secrets(server.url(scheme)), "eth_x", headers=HEADERS)
    error = caught.value
    assert_no_secret(error)
    assert error.message == f"no /v3/{HIDDEN} for user:{HIDDEN} with {HIDDEN}"
    assert error.data == {f"/v3/{HIDDEN}": [f"/v3/{HIDDEN}", 5]}


def test_deep_error_data_is_refused(server: UpstreamServer):
    deep = b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)
    error = b'{"code": 1, "message": "x", "data": ' + deep + b"}"
    server.fault = body(b'{"jsonrpc": "2.0", "id": 1, "error": ' + error + b"}")
    with failing():
        ask(server.http_url, "eth_x")


# Failures

OVER_BOTH = {
    "not JSON": body(b"<html>Bad gateway /v3/secret-path</html>"),
    "nothing": body(b""),
    "not UTF-8": body(b'{"jsonrpc": "2.0", "id": 1, "result": "\xff"}'),
    "truncated JSON": cut,
    "closed connection": hang_up,
    "no answer": hold,
    "too long": content(lambda found: found | {"result": "x" * 2**20}),
    "other id": content(lambda found: found | {"id": 10**6}),
    "text as id": content(lambda found: found | {"id": "1"}),
    "list as id": content(lambda found: found | {"id": []}),
    "no result": content(lambda found: {"jsonrpc": "2.0", "id": found["id"]}),
    "number": content(lambda found: 5),
    "text": content(lambda found: "secret-path"),
    "list": content(lambda found: []),
    "list of numbers": content(lambda found: [5]),
    **{
        f"error {error}": content(
            lambda found, error=error: {"id": found["id"], "error": error}
        )
        for error in (
            *(5, "secret-path", {}, {"code": "1", "message": "x"}, {"code": 1}),
            {"code": 2**31, "message": "x"},
        )
    },
}
OVER_HTTP = {
    "redirect": status(307, Location="http://127.0.0.1:1/v3/secret-path"),
    "unauthorized": status(401, b"who is secret-path"),
    "not found": status(404, b"[]"),
    "rate limit": status(429, b'{"error": {"code": 1, "message": "x"}, "id": 1}'),
    "failure": status(500, b'{"error": {"code": 1, "message": "x"}, "id": 1}'),
    "overload": status(503, b"<html>"),
    "long body announced": status(200, b"{}", Content_Length=str(2**40)),
    "not HTTP": status(200, b"", Content_Length="secret-path"),
    "compressed": status(200, b"\x1f\x8b", Content_Encoding="gzip"),
}


@pytest.mark.parametrize("fault", OVER_BOTH)
@scenario
async def test_failure_is_unavailable(server: UpstreamServer, scheme: str, fault: str):
    server.methods["eth_chainId"] = "0x1"
    server.fault = OVER_BOTH[fault]
    url = with_secrets(server.url(scheme))
    async with UpstreamClient(url, HEADERS, timeout=SOON) as client:
        with failing():
            await client.call("eth_chainId")
        server.fault = None
        server.release()

        async def works() -> bool:
            try:
                return await client.call("eth_chainId") == "0x1"
            except UpstreamUnavailable:
                return False  # on a slow machine

        # A late response does not count as the response to another call.
        await until(works)
        assert not any(secret in repr(client) for secret in SECRETS)


@pytest.mark.parametrize("fault", OVER_HTTP)
def test_failure_over_http_is_unavailable(server: UpstreamServer, fault: str):
    server.methods["eth_chainId"] = "0x1"
    server.fault = OVER_HTTP[fault]
    with failing():
        ask(with_secrets(server.http_url), "eth_chainId", headers=HEADERS)
    assert len(server.requests) == 1


def test_error_object_counts_with_a_client_errors_status(server: UpstreamServer):
    error = b'{"jsonrpc": "2.0", "id": null, "error": {"code": 7, "message": "no"}}'
    server.fault = status(400, error)
    with pytest.raises(UpstreamError, match="no") as caught:
        ask(server.http_url, "eth_chainId")
    assert caught.value.code == 7


@scenario
async def test_limit_of_a_response_may_be_raised(server: UpstreamServer, scheme: str):
    server.methods["debug_x"] = "x" * 2**21
    async with UpstreamClient(server.url(scheme), max_bytes=100) as client:
        with failing() as caught:
            await client.call("debug_x")
        assert caught.value.reason in (
            "the response is longer than 100 bytes",
            "a message is too long",
        )
        found = await client.call("debug_x", max_bytes=2**22)
        assert len(found) == 2**21


def test_status_and_delay_are_reported(server: UpstreamServer):
    for number, text, delay in (
        (429, "7", 7.0),
        (503, "0", 0.0),
        (503, str(10**30), MAX_RETRY_AFTER),
        (503, "9" * 5000, MAX_RETRY_AFTER),
        (429, "nan", None),
        (429, "-5", 0.0),
        (429, "soon", None),
        (429, "Mon, 99 Foo 2026 99:99:99 GMT", None),
    ):
        server.faults.append(status(number, Retry_After=text))
        with failing() as caught:
            ask(server.http_url, "eth_chainId")
        assert (caught.value.status, caught.value.retry_after) == (number, delay)
    server.faults.append(status(429, Retry_After=formatdate(time.time() + 100)))
    with failing() as caught:
        ask(server.http_url, "eth_chainId")
    assert caught.value.retry_after is not None
    assert 0 <= caught.value.retry_after <= MAX_RETRY_AFTER == 30, (
        "as following.md says"
    )


def test_upstream_that_is_not_there(scheme: str):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"{scheme}://user:hunter22@127.0.0.1:{closed.getsockname()[1]}{PATH}"
        with failing():
            ask(url, "eth_chainId", headers=HEADERS)


@contextmanager
def listening(text: bytes | None) -> Iterator[int]:
    """Run a server that sends a text to each client and closes the connection.

    text: None to send nothing, and to keep the connection open. Yields the port.
    """

    def serve() -> None:
        clients = []
        with suppress(OSError):  # until the listener is shut down
            while True:
                client, _ = listener.accept()
                clients.append(client)
                if text is not None:
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
        for client in clients:
            client.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    "text",
    [b"", b"secret-path", b"HTTP/1.1 200 OK\r\n", b"\x15\x03\x01\r\n\r\n", None],
    ids=repr,
)
@pytest.mark.parametrize("scheme", ["http", "ws", "https", "wss"])
def test_server_that_does_not_speak_http(scheme: str, text: bytes | None):
    with listening(text) as port:
        url = f"{scheme}://user:hunter22@127.0.0.1:{port}{PATH}"

        # Half of it is for the TLS handshake, whose socket must be closed then.
        timeout = SOON * 20 if scheme == "https" else SOON

        async def scenario() -> None:
            async with UpstreamClient(url, HEADERS, timeout=timeout) as client:
                with failing():
                    await client.call("eth_chainId")
            await loop_turns()  # asyncio closes transports later

        asyncio.run(in_time(scenario()))


_RESULT = b'{"jsonrpc": "2.0", "id": 1, "result": "0x1"}'


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"
        % (len(_RESULT), _RESULT),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"1\r\n{\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(_RESULT) - 1, _RESULT[1:]),
        b"HTTP/1.1 200 OK\r\n\r\n" + _RESULT,
        b"HTTP/1.0 200 OK\r\n\r\n" + _RESULT,
        None,
    ],
)
def test_ends_of_responses(response: bytes | None):
    """Read bodies of all framings, and none after an endless head."""
    ended = asyncio.Event()
    many = b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 2**14

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"}")
        writer.write(response or many)
        if response is None:
            await reader.read()  # until the client closes the connection
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    async def scenario() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with UpstreamClient(f"http://127.0.0.1:{port}", timeout=60) as client:
                if response is not None:
                    assert await client.call("eth_chainId") == "0x1"
                else:
                    with failing():
                        await client.call("eth_chainId")
            await ended.wait()

    asyncio.run(in_time(scenario()))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "secret-path",
        "http://[::/secret-path",
        "http://a b/secret-path",
        "http:///secret-path",
        "http://127.0.0.1:99999/secret-path",
        "ws://127.0.0.1:99999/secret-path",
        "ws://[::/secret-path",
        "ftp://localhost/secret-path",
        f"http://{'a' * 70}/secret-path",
        f"ws://{'a' * 70}/secret-path",
    ],
)
def test_invalid_url_is_unavailable(url: str):
    with failing():
        ask(url, "eth_chainId", timeout=SOON * 10)


@pytest.mark.parametrize("text", ["token-of-ours\r\nA: b", "token-of-ours é €"])
def test_invalid_header_is_unavailable(server: UpstreamServer, scheme: str, text: str):
    with failing():
        ask(server.url(scheme), "eth_chainId", headers={"X-Api-Key": text})


# TLS


def test_certificates_are_verified(
    tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
):
    make_certificate(tmp_path, "localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "fullchain.pem", tmp_path / "privkey.pem")
    with running_upstream(UpstreamServer(context)) as server:
        server.methods["eth_chainId"] = "0x1"
        url = with_secrets(server.url(scheme))
        with failing():
            ask(url, "eth_chainId", headers=HEADERS)
        assert server.calls == []
        # The operator trusts the certificate with the usual environment variable.
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "fullchain.pem"))
        tls.cache_clear()
        try:
            assert ask(url, "eth_chainId") == "0x1"
            with failing():
                ask(url.replace("localhost", "127.0.0.1"), "eth_chainId")
        finally:
            tls.cache_clear()


# Headers


def test_headers_are_sent(server: UpstreamServer, scheme: str):
    server.methods["eth_chainId"] = "0x1"
    headers = {"X-Api-Key": "token-of-ours", "authorization": "Bearer of-a-token"}
    ask(server.url(scheme), "eth_chainId", headers=headers)
    assert server.headers["x-api-key"] == "token-of-ours"
    assert server.headers["authorization"] == "Bearer of-a-token"
    assert server.headers["user-agent"] == "Portcullis"
    ask(with_secrets(server.url(scheme)), "eth_chainId", headers=headers)
    assert server.headers["authorization"] == "Bearer of-a-token"


def test_user_info_is_basic_authentication(server: UpstreamServer, scheme: str):
    server.methods["eth_chainId"] = "0x1"
    url = server.url(scheme)
    ask(url.replace("://", "://us%40er:p%3Aw%2F@"), "eth_chainId")
    assert server.headers["authorization"] == "Basic dXNAZXI6cDp3Lw=="
    ask(url.replace("://", "://user@"), "eth_chainId")
    assert server.headers["authorization"] == "Basic dXNlcjo="
    ask(url, "eth_chainId")
    assert "authorization" not in server.headers


# Batches


def test_batch_has_results_in_the_order_of_the_calls(
    server: UpstreamServer, scheme: str
):
    server.methods["eth_same"] = lambda value: value
    server.methods["eth_no"] = refuse(-32000, "no")
    server.fault = content(
        lambda found: found[::-1] if isinstance(found, list) else found
    )

    async def scenario() -> list[Any]:
        async with UpstreamClient(server.url(scheme)) as client:
            assert await client.batch([]) == []
            assert await client.batch([("eth_same", (5,))]) == [5]
            calls = [("eth_same", (1,)), ("eth_no", ()), ("eth_same", ([2],))]
            return await client.batch(calls)

    first, error, last = asyncio.run(scenario())
    assert (first, last) == (1, [2])
    assert isinstance(error, UpstreamError)
    assert (error.code, error.message) == (-32000, "no")


@scenario
async def test_long_batch_is_sent_in_parts(server: UpstreamServer, scheme: str):
    server.methods["eth_same"] = lambda value: value
    async with UpstreamClient(server.url(scheme)) as client:
        calls = [("eth_same", (number,)) for number in range(MAX_BATCH + 5)]
        assert await client.batch(calls) == list(range(MAX_BATCH + 5))
    assert server.requests == [MAX_BATCH, 5]


@pytest.mark.parametrize(
    "change",
    {
        "missing": lambda found: found[1:],
        "none": lambda found: [],
        "twice": lambda found: [found[0], found[0]],
        "one more": lambda found: [*found, found[0] | {"id": 99}],
        "other id": lambda found: [found[0], found[1] | {"id": 99}],
        "no id": lambda found: [found[0], {"result": 5}],
        "no objects": lambda found: [5, 6],
        "one object": lambda found: found[0],
    }.items(),
    ids=lambda change: change[0],
)
@scenario
async def test_batch_with_other_answers_is_unavailable(
    server: UpstreamServer, scheme: str, change: Any
):
    server.methods["eth_same"] = lambda value: value
    server.fault = content(change[1])
    async with UpstreamClient(server.url(scheme)) as client:
        with failing():
            await client.batch([("eth_same", (1,)), ("eth_same", (2,))])


@scenario
async def test_batch_may_be_refused_as_a_whole(server: UpstreamServer):
    error = {"id": None, "error": {"code": -32600, "message": "batch too large"}}
    server.fault = content(lambda found: error)
    async with UpstreamClient(server.http_url) as client:
        with pytest.raises(UpstreamError, match="batch too large"):
            await client.batch([("eth_x", ()), ("eth_y", ())])


@scenario
async def test_calls_are_sent_one_by_one_over_a_socket_without_batches(
    server: UpstreamServer,
):
    server.methods["eth_same"] = lambda value: value
    error = {"id": None, "error": {"code": -32600, "message": "batch too large"}}
    server.fault = content(lambda found: error if isinstance(found, list) else found)
    async with UpstreamClient(server.ws_url) as client:
        for _ in range(2):
            calls = [("eth_same", (1,)), ("eth_same", (2,))]
            assert await client.batch(calls) == [1, 2]
    assert server.requests == [2, 1, 1, 1, 1]


@scenario
async def test_calls_in_progress_are_limited(server: UpstreamServer, scheme: str):
    server.methods |= {"eth_x": "x", "eth_y": "y"}
    server.fault = hold
    async with UpstreamClient(server.url(scheme), timeout=600) as client:
        calls = [
            asyncio.create_task(client.call("eth_x")) for _ in range(MAX_CALLS + 4)
        ]
        await until(lambda: server.count("eth_x") == MAX_CALLS)
        server.fault = None
        async with UpstreamClient(server.url(scheme)) as other:
            for _ in range(5):
                # A call would have arrived in the meantime.
                await other.call("eth_y")
        assert server.count("eth_x") == MAX_CALLS
        await asyncio.to_thread(server.release)
        assert await in_time(asyncio.gather(*calls)) == ["x"] * len(calls)
