"""An upstream on loopback, over HTTP and WebSocket, that can misbehave in every way.

`UpstreamServer.methods` are the results; `faults` change what is sent of them. Faults
of both transports are functions of a `Reply`, such as `hang_up`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Thread
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from samples.node import Refused
from tests.support.waiting import wait_until

PATH = "/v3/secret-path"
"""The path of both transports. Other paths are not served."""

MAX_HEAD_BYTES = 64 * 2**10

_silent = logging.Logger("upstream")
_silent.disabled = True  # only the client's log lines matter to tests


@dataclass
class Reply:
    """The answer to one HTTP request or WebSocket message.

    content: a response object, or a list of them for a batch. body: instead of the
    content's JSON. length: bytes of the body that are sent, all if it is None; over HTTP
    the connection is closed then. -1 closes the connection without an answer.
    status, headers: of HTTP. is_held: whether nothing is sent before
    `UpstreamServer.release`. subscriptions: those that begin with it, as in
    `UpstreamServer.sockets`.
    """

    content: Any
    body: bytes | None = None
    length: int | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    is_held: bool = False
    subscriptions: dict[str, str] = field(default_factory=dict)


Fault = Callable[[Reply], None]
"""Changes a reply."""


def status(number: int, body: bytes = b"", **headers: str) -> Fault:
    """Return the fault of answering with an HTTP status. Underscores become hyphens."""

    def change(reply: Reply) -> None:
        reply.status, reply.body = number, body
        reply.headers |= {
            name.replace("_", "-"): text for name, text in headers.items()
        }

    return change


def body(text: bytes) -> Fault:
    """Return the fault of sending a text of any format."""

    def change(reply: Reply) -> None:
        reply.body = text

    return change


def cut(reply: Reply) -> None:
    """Send the first bytes only."""
    reply.length = 20


def hang_up(reply: Reply) -> None:
    """Close the connection without an answer."""
    reply.length = -1


def hold(reply: Reply) -> None:
    """Don't answer before `UpstreamServer.release`."""
    reply.is_held = True


def content(change_content: Callable[[Any], Any]) -> Fault:
    """Return the fault of answering with a changed response object."""

    def change(reply: Reply) -> None:
        reply.content = change_content(reply.content)

    return change


class UpstreamServer:
    """The server's answers, and the calls that it has received.

    methods: by name, a result or a function of the parameters, which may raise Refused.
    faults: applied to the next replies, one each. fault: applied to all others.
    calls: all calls received, as (method, params). requests: how many calls each HTTP
    request or WebSocket message had. headers: of the newest request or handshake, with
    names in lower case.
    handshake: HTTP status of WebSocket handshakes instead of 101, and headers.
    sockets: open WebSockets, each with the kinds of its subscriptions by their ids.
    connections: how many were made, of both transports.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """Make a server. tls: its certificate for localhost, for https and wss."""
        self._tls = tls
        self.methods: dict[str, Any] = {}
        self.faults: deque[Fault] = deque()
        self.fault: Fault | None = None
        self.calls: list[tuple[str, list[Any]]] = []
        self.requests: list[int] = []
        self.headers: dict[str, str] = {}
        self.handshake: tuple[int, dict[str, str]] | None = None
        self.sockets: dict[ServerConnection, dict[str, str]] = {}
        self.connections = 0
        self.http_url = self.ws_url = ""
        self._next_subscription = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._released = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def url(self, scheme: str) -> str:
        """Return the server's URL by its transport, `http` or `ws`."""
        return {"http": self.http_url, "ws": self.ws_url}[scheme]

    def count(self, method: str) -> int:
        """Return the number of calls of a method."""
        return [name for name, _ in self.calls].count(method)

    # Actions of the server that other threads call

    def notify(self, kind: str, result: Any) -> int:
        """Send a notification to all subscriptions of a kind; return their number."""
        return self._run(self._notify(kind, result))

    def send(self, text: str) -> None:
        """Send a message on all WebSockets."""
        self._run(self._send(text))

    def drop(self) -> None:
        """Abort all WebSockets."""
        self._run(self._drop())

    def go_silent(self) -> None:
        """Stop reading from the WebSockets, so that pings are not answered."""
        self._run(self._go_silent())

    def release(self) -> None:
        """Send the replies that are held, and hold no others."""
        self._run(self._release())

    def release_before(self, text: str) -> None:
        """Send the held replies, followed immediately by a message on all WebSockets."""
        self._run(self._release(text))

    def _run(self, coroutine: Any) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _notify(self, kind: str, result: Any) -> int:
        sent = 0
        for socket, subscriptions in list(self.sockets.items()):
            for name, of_kind in list(subscriptions.items()):
                if of_kind == kind:
                    params = {"subscription": name, "result": result}
                    # A socket that has just been dropped is still in the list.
                    with suppress(ConnectionClosed):
                        await _send_json(socket, "eth_subscription", params)
                        sent += 1
        return sent

    async def _send(self, text: str) -> None:
        for socket in list(self.sockets):
            with suppress(ConnectionClosed):
                await socket.send(text)

    async def _drop(self) -> None:
        for socket in self.sockets:
            socket.transport.abort()

    async def _go_silent(self) -> None:
        for socket in self.sockets:
            socket.transport.pause_reading()

    async def _release(self, text: str | None = None) -> None:
        self._released.set()
        held = list(self._tasks)
        if text is not None:
            await asyncio.gather(*held)
            await self._send(text)

    # Answers

    def reply(self, text: bytes, socket: ServerConnection | None = None) -> Reply:
        """Return the reply to a request or message."""
        found = json.loads(text)
        calls = found if isinstance(found, list) else [found]
        self.requests.append(len(calls))
        reply = Reply(None)
        answers = [self._answer(call, socket, reply) for call in calls]
        reply.content = answers if isinstance(found, list) else answers[0]
        fault = self.faults.popleft() if self.faults else self.fault
        if fault is not None:
            fault(reply)
        return reply

    def _answer(
        self, call: dict[str, Any], socket: ServerConnection | None, reply: Reply
    ) -> dict[str, Any]:
        method, params = call["method"], call["params"]
        self.calls.append((method, params))
        answer = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            return answer | {"result": self._result(method, params, socket, reply)}
        except Refused as refusal:
            return answer | {"error": refusal.error}

    def _result(
        self,
        method: str,
        params: list[Any],
        socket: ServerConnection | None,
        reply: Reply,
    ) -> Any:
        if method in self.methods:
            found = self.methods[method]
            return found(*params) if callable(found) else found
        if socket is not None and method == "eth_subscribe":
            self._next_subscription += 1
            name = hex(self._next_subscription)
            reply.subscriptions[name] = params[0]
            return name
        if socket is not None and method == "eth_unsubscribe":
            return self.sockets[socket].pop(params[0], None) is not None
        raise Refused(-32601, f"the method {method} does not exist/is not available")

    # Transports

    async def _serve_http(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._serve_request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _serve_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.headers = _headers(head[1:])
        text = await reader.readexactly(int(self.headers["content-length"]))
        if head[0] != f"POST {PATH} HTTP/1.1":
            reply = Reply(None, body=b"not here", status=HTTPStatus.NOT_FOUND)
        else:
            reply = self.reply(text)
        if reply.is_held:
            await self._released.wait()
        if reply.length == -1:
            return False
        sent = _text(reply)
        headers = {"Content-Length": str(len(sent))} | reply.headers
        lines = [f"HTTP/1.1 {reply.status} X", *map(": ".join, headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode() + sent[: reply.length])
        await writer.drain()
        return reply.length is None

    async def _serve_socket(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.headers = {
            name.lower(): text for name, text in socket.request.headers.raw_items()
        }
        self.sockets[socket] = {}
        try:
            async for message in socket:
                reply = self.reply(_bytes(message), socket)
                if reply.length == -1:
                    socket.transport.abort()
                    continue
                task = asyncio.create_task(self._send_reply(socket, reply))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                if not reply.is_held:
                    await task
        except ConnectionClosed:
            pass
        finally:
            del self.sockets[socket]

    async def _send_reply(self, socket: ServerConnection, reply: Reply) -> None:
        if reply.is_held:
            await self._released.wait()
        sent = _text(reply)[: reply.length]
        with suppress(ConnectionClosed):
            await socket.send(sent, text=True)
            # Like geth, it sends no notification before the id.
            self.sockets[socket] |= reply.subscriptions

    def _check_handshake(
        self, socket: ServerConnection, request: Request
    ) -> Response | None:
        self.connections += 1
        if request.path != PATH:
            return socket.respond(HTTPStatus.NOT_FOUND, "not here")
        if self.handshake is None:
            return None
        number, headers = self.handshake
        response = socket.respond(HTTPStatus(number), "no socket")
        response.headers.update(headers)
        return response

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve on free ports until an event is set."""
        http = await asyncio.start_server(
            self._serve_http, "127.0.0.1", 0, limit=MAX_HEAD_BYTES, ssl=self._tls
        )
        async with (
            http,
            serve(
                self._serve_socket,
                *("127.0.0.1", 0),
                ssl=self._tls,
                process_request=self._check_handshake,
                ping_interval=None,
                max_size=None,
                compression=None,
                close_timeout=0.1,
                logger=_silent,
            ) as sockets,
        ):
            letter, host = ("s", "localhost") if self._tls else ("", "127.0.0.1")
            self.http_url = f"http{letter}://{host}:{_port(http)}{PATH}"
            self.ws_url = f"ws{letter}://{host}:{_port(sockets)}{PATH}"
            self._loop = asyncio.get_running_loop()
            await stop.wait()
            self._released.set()
            await self._drop()
            for writer in self._writers:
                writer.transport.abort()


@contextmanager
def running_upstream(server: UpstreamServer | None = None) -> Iterator[UpstreamServer]:
    """Run a server in a thread with an event loop of its own."""
    server = server or UpstreamServer()
    stop = asyncio.Event()
    thread = Thread(target=asyncio.run, args=[server.serve(stop)])
    thread.start()
    try:
        wait_until(lambda: server._loop is not None or not thread.is_alive())
        yield server
    finally:
        if server._loop is not None:
            server._loop.call_soon_threadsafe(stop.set)
        thread.join()


def refuse(code: int, message: str, data: Any = None) -> Callable[..., Any]:
    """Return a method that answers with an error object."""

    def answer(*_: Any) -> Any:
        raise Refused(code, message, data)

    return answer


async def _send_json(socket: ServerConnection, method: str, params: Any) -> None:
    await socket.send(
        json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
    )


def _text(reply: Reply) -> bytes:
    return json.dumps(reply.content).encode() if reply.body is None else reply.body


def _bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message


def _headers(lines: Sequence[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): text.strip() for name, _, text in pairs}


def _port(server: Any) -> int:
    (listener, *_) = server.sockets
    port: int = listener.getsockname()[1]
    return port
