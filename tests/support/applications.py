"""Small ASGI applications, to see how the server treats the ones it runs."""

from __future__ import annotations

import asyncio
import os
import socket
from functools import partial
from pathlib import Path

from asgiref.sync import markcoroutinefunction

from nodeapi.http import (
    DONE,
    PLAIN_ANSWER,
    WHOLE_BODY,
    GoOn,
    start_of_plain_answer,
)


async def live(receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def process_id(scope, receive, send):
    """Answer with the number of the process that answers."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    body = str(os.getpid()).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def looking(scope, receive, send):
    """Answer with what happened to who came while the process was starting."""
    if scope["type"] == "lifespan":
        with socket.socket() as early:
            scope["state"]["met"] = early.connect_ex(
                ("127.0.0.1", int(os.environ["OWN_PORT"]))
            )
        await live(receive, send)
        return
    body = str(scope["state"]["met"]).encode()
    await send(start_of_plain_answer(len(body)))
    await send({"type": "http.response.body", "body": body})


async def broken(scope, receive, send):
    """Fail to start."""
    raise RuntimeError("no start today")


async def permitted(scope, receive, send):
    """Start only while there is the file that PERMISSION names; else as `process_id`."""
    if scope["type"] == "lifespan" and not Path(os.environ["PERMISSION"]).exists():
        raise RuntimeError("no permission to start")
    await process_id(scope, receive, send)


async def hesitant(scope, receive, send):
    """Never come to serve."""
    await asyncio.Event().wait()


async def sized(scope, receive, send):
    """Answer `/plain/SIZE` and `/sent/SIZE` alike, the first all at once if it can be."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    while (await receive()).get("more_body"):
        pass
    _, kind, *rest = scope["path"].split("/")
    body = b"x" * int(rest[0] if rest else 0)
    if kind == "plain" and scope["extensions"][PLAIN_ANSWER](body):
        return  # else it is sent as messages
    await send(start_of_plain_answer(len(body)))
    await send({"type": "http.response.body", "body": body})


def ask(scope, send):
    """Answer with the path's end in a while, or never: at once then, or in a task."""
    loop = asyncio.get_running_loop()
    answer = scope["path"].rpartition("/")[2].encode()
    plainly = scope["extensions"][PLAIN_ANSWER]

    async def answer_later():
        await send(start_of_plain_answer(len(answer)))
        await send({"type": "http.response.body", "body": answer})

    def go_on():
        future.result()
        if answer == b"broken":
            raise RuntimeError("no answer today either")
        if answer.startswith(b"task") or not plainly(answer):
            return answer_later()
        return DONE

    future = loop.create_future()
    if answer != b"never":
        loop.call_later(0.01, future.set_result, None)
    return GoOn(future, go_on)


async def echo_later(receive, send):
    """Answer with the length of the body, read as it comes."""
    size, message = 0, {"more_body": True}
    while message.get("more_body"):
        message = await receive()
        size += len(message["body"])
    body = f"later {size}".encode()
    await send(start_of_plain_answer(len(body)))
    await send({"type": "http.response.body", "body": body})


@markcoroutinefunction
def prompt(scope, receive, send):
    """Answer with the length of the body as it is called, if that has come; or fail."""
    if scope["type"] == "lifespan":
        return live(receive, send)
    if scope["path"] == "/broken":
        raise RuntimeError("no answer today")
    if scope["path"].startswith("/asked"):
        return ask(scope, send)
    body = scope["extensions"][WHOLE_BODY]()
    if body is None:
        return echo_later(receive, send)
    assert scope["extensions"][WHOLE_BODY]() == b"", "it is given once"
    host, _ = scope["client"]
    assert scope["extensions"][PLAIN_ANSWER](b"at once %d %a" % (len(body), host))
    return DONE


LONG = 8_000_000
"""Bytes of a long answer, more than a socket takes."""


class Recognising:
    """Says how it was told of a request: `told SIZE CLIENT`, or `known SIZE CLIENT`.

    `/unknown` is never recognised. Recognised, `/later` is answered by a coroutine,
    `/asked` when a future is done, `/slow` when one is later, `/long` at length, `/waiting`
    when the client hangs up, and `/broken` not at all.
    """

    def __init__(self):
        self.hung_up = []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await live(receive, send)
            return
        size, message = 0, {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            size += len(message.get("body", b""))
        await self._send(b"told %d %a" % (size, scope["client"][0]), send)

    def recognise(self, scope):
        if scope["path"] == "/unknown":
            return None
        return partial(self._answer, scope["path"], scope["client"][0])

    def _answer(self, path, client, exchange):
        answer = b"known %d %a" % (len(exchange.take_body()), client)
        assert exchange.take_body() == b"", "it is given once"
        if path == "/broken":
            raise RuntimeError("no answer today")
        if path == "/waiting":
            return self._wait(exchange)
        if path == "/later":
            return self._send(answer, exchange.send)
        if path == "/long":
            answer = b"x" * LONG
        if path in ("/asked", "/slow"):
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            seconds = 0.02 if path == "/asked" else 0.6
            loop.call_later(seconds, future.set_result, None)
            return GoOn(future, partial(self._go_on, answer, exchange))
        return self._go_on(answer, exchange)

    def _go_on(self, answer, exchange):
        sent = exchange.answer_plainly(answer, b"x-more: a\r\n")
        return DONE if sent else self._send(answer, exchange.send)

    async def _wait(self, exchange):
        self.hung_up.append(await exchange.receive())

    async def _send(self, answer, send):
        await send(start_of_plain_answer(len(answer)))
        await send({"type": "http.response.body", "body": answer})


recognising = Recognising()
