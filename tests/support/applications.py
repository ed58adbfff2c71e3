"""Small ASGI applications for tests of the server."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from jsonrpc.later import Later
from server.asgi import AsgiNode
from server.options import ServerOptions
from server.request import Response, ResponseAborted, StreamedBody


async def live(receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def process_id(scope, receive, send):
    """Answer with the process id."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    body = str(os.getpid()).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def looping(scope, receive, send):
    """Answer as `process_id`, but never return from `/loop`."""
    while scope["type"] == "http" and scope["path"] == "/loop":
        pass
    await process_id(scope, receive, send)


async def looking(scope, receive, send):
    """Answer with the result of a connection attempt during the start of the process."""
    if scope["type"] == "lifespan":
        with socket.socket() as early:
            scope["state"]["met"] = early.connect_ex(
                ("127.0.0.1", int(os.environ["OWN_PORT"]))
            )
        await live(receive, send)
        return
    body = str(scope["state"]["met"]).encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def broken(scope, receive, send):
    """Fail to start."""
    raise RuntimeError("no start today")


async def permitted(scope, receive, send):
    """Start only if the file named by PERMISSION exists. Answer as `process_id`."""
    if scope["type"] == "lifespan" and not Path(os.environ["PERMISSION"]).exists():
        raise RuntimeError("no permission to start")
    await process_id(scope, receive, send)


async def hesitant(scope, receive, send):
    """Never complete the lifespan's startup."""
    await asyncio.Event().wait()


PLAIN = ((b"content-type", b"text/plain"),)


class Answering:
    """An application with node paths, `/node/KIND[/ARGUMENT]`, and pages.

    Pages answer with `page`, the path and the length of the body. Of node requests,
    `echo` answers with the length of the body and the client, `size/N` with N bytes,
    `parts/N` with the same in two parts, `stream/N/SIZE` with N chunks, `broken-stream`
    with a stream that ends early, `later/TEXT` in a while, `released/TEXT` when
    `released` is set, `never` never, `gone` when the client has disconnected,
    `paused-stream` with a stream that waits for `released`, `endless-stream` with a
    stream that has no end, `lost-stream` with a stream whose connection `abort` ends at
    once, `body` with the body that the request has after it was read, `refused` without
    reading the body, `crash` and `fail` raise.
    """

    def __init__(self, **options):
        self.server_options = ServerOptions(
            handler=self.answer,
            is_node_path=lambda path: path.startswith("/node/"),
            refusals=dict.fromkeys(
                ("process", "key", "address", "connections"),
                b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n",
            ),
            **options,
        )
        self.events = []
        self.released = asyncio.Event()
        self.abort = lambda: None

    def answer(self, request):
        _, _, kind, *arguments = request.path.split("/")
        return getattr(self, "_" + kind.replace("-", "_"))(request, *arguments)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await live(receive, send)
        elif scope["type"] == "websocket":
            await self._serve_websocket(receive, send)
        elif scope["path"].startswith("/node/"):
            await AsgiNode(self.answer)(scope, receive, send)
        else:
            size, message = 0, {"more_body": True}
            while message.get("more_body"):
                message = await receive()
                size += len(message.get("body", b""))
            body = b"page %b %d" % (scope["path"].encode(), size)
            headers = [(b"content-length", b"%d" % len(body))]
            start = {"type": "http.response.start", "status": 200, "headers": headers}
            await send(start)
            await send({"type": "http.response.body", "body": body})

    async def _serve_websocket(self, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})

    def _echo(self, request):
        request.claim(1, request.client)
        body = Later(request.body)
        if request.body is None:
            body = Later.from_future(request.read_body(10**6, 60))
        text = b"%a at once" if request.body is not None else b"%a later"
        return body.then(
            lambda body: Response(
                200, PLAIN, b"%d " % len(body) + text % request.client
            )
        )

    def _size(self, request, size):
        return Later(Response(200, PLAIN, b"x" * int(size)))

    def _parts(self, request, size):
        half = int(size) // 2
        return Later(Response(200, PLAIN, (b"x" * half, b"x" * (int(size) - half))))

    def _stream(self, request, count, size=""):
        async def chunks():
            for number in range(int(count)):
                yield b"%d," % number

        async def close():
            self.events.append("closed")

        length = int(size) if size else None
        return Later(Response(200, PLAIN, StreamedBody(chunks(), length, close)))

    def _paused_stream(self, request):
        async def chunks():
            yield b"some"
            await self.released.wait()
            yield b"more"

        async def close():
            self.events.append("closed")

        return Later(Response(200, PLAIN, StreamedBody(chunks(), 8, close)))

    def _endless_stream(self, request):
        async def chunks():
            while True:
                yield b"x" * 1000

        async def close():
            self.events.append("closed")

        return Later(Response(200, PLAIN, StreamedBody(chunks(), 10**12, close)))

    def _lost_stream(self, request):
        loop = asyncio.get_running_loop()
        answer = loop.create_future()

        def lose():
            answer.set_result(self._stream(request, "3").result())
            self.abort()

        loop.call_soon(lose)
        return Later.from_future(answer)

    def _body(self, request):
        return Later.from_future(request.read_body(1000, 60)).then(
            lambda _: Response(200, PLAIN, b"%a" % request.body)
        )

    def _broken_stream(self, request):
        async def chunks():
            yield b"some"
            raise ResponseAborted

        async def close():
            self.events.append("closed")

        return Later(Response(200, PLAIN, StreamedBody(chunks(), 100, close)))

    def _later(self, request, text):
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_later(0.01, future.set_result, text.encode())
        return Later.from_future(future).then(lambda text: Response(200, PLAIN, text))

    def _released(self, request, text):
        released = Later.from_coroutine(self.released.wait())
        return released.then(lambda _: Response(200, PLAIN, text.encode()))

    def _never(self, request):
        self.events.append("began")
        return Later.from_future(asyncio.get_running_loop().create_future())

    def _gone(self, request, then=""):
        async def wait():
            request.disconnected().cancel()  # as happens at the end of a portion of a batch
            await request.disconnected()
            self.events.append("gone")
            return self._stream(request, "3").result() if then else None

        return Later.from_coroutine(wait())

    def _refused(self, request):
        return Later(Response(401, PLAIN, b"refused"))

    def _limited(self, request):
        return Later.from_future(request.read_body(10, 0.3)).handle(
            lambda read: Response(200, PLAIN, repr(read.error).encode())
        )

    def _crash(self, request):
        raise RuntimeError("no answer today")

    def _fail(self, request):
        return Later.failed(RuntimeError("no answer later"))
