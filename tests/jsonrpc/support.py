"""A small registry of methods, and functions that answer bodies with it."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from jsonrpc.answers import Answer, Reply
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import RpcError
from jsonrpc.later import DONE, Later
from jsonrpc.params import Param, anything
from jsonrpc.registry import Method, MethodRegistry
from jsonrpc.source import Text

registry = MethodRegistry()
GENEROUS = Limits()


class Denied(RpcError):
    """Raised when a caller lacks a capability."""

    remedy = "Request the capability."
    http_status = 403
    code = -32002
    reason = "denied"
    text = "denied"


class Broken(Exception):
    """Raised when a layer below the methods fails."""


class Gone(RpcError):
    """Reported in place of Broken."""

    remedy = "Try again later."
    http_status = 503
    code = -32603
    reason = "gone"
    text = "gone"


class Caller:
    """A request's context."""

    request_id = "request-7"
    customer = 1
    site = "https://node.example"

    def __init__(self) -> None:
        self.balance = 0
        """Credits that were charged and not refunded."""
        self.booked: list[tuple[str | None, int]] = []
        """Method and credits of each call."""

    def authorise(self, method: Method) -> None:
        raise Denied

    def charge(self, credits: int) -> Later[None]:
        self.balance += credits
        return DONE

    def refund(self, credits: int) -> None:
        self.balance -= credits

    def book(
        self, method: str | None, credits: int, size: int, error: RpcError | None
    ) -> None:
        self.booked.append((method, credits))


def number(value: Any) -> int:
    """Decode a number. Reject other values."""
    if type(value) is not int:
        raise ValueError("not a number")
    return value


def decimal(value: int) -> bytes:
    return b"%d" % value


SUM = [
    Param("a", number),
    Param("b", number),
    Param("c", number, required=False, default=100),
]


@registry.method("sum", params=SUM, encode=decimal, result={}, summary="Adds.")
def add(context: Caller, a: int, b: int, c: int) -> int:
    return a + b + c


@registry.method("later", params=SUM, encode=decimal, result={}, summary="Adds.")
async def add_later(context: Caller, a: int, b: int, c: int) -> int:
    await asyncio.sleep(0)
    return a + b + c


def source_of(value: object, text: Text | None = None) -> str | None:
    """Decode any value as its own text."""
    return None if text is None else text()


@registry.method(
    "echo",
    params=[Param("ignored", anything), Param("value", source_of, reads_text=True)],
    result={},
    summary="Returns the second argument's text.",
)
def echo(context: Caller, ignored: object, source: str) -> bytes:
    return orjson.dumps(source)


@registry.method("nothing", result={}, summary="Returns nothing.")
def nothing(context: Caller) -> None:
    return None


@registry.method(
    "big", params=[Param("size", number)], result={}, summary="Returns much."
)
def big(context: Caller, size: int) -> bytes:
    return b'"' + b"x" * (size - 2) + b'"'


@registry.method(
    "fill",
    params=[Param("size", number)],
    result={},
    summary="Returns as much as fits.",
    takes_room=True,
)
async def fill(context: Caller, size: int, room: int = 1000) -> bytes:
    await asyncio.sleep(0)
    return big(context, min(size, room))


@registry.method("never", result={}, summary="Does not return.")
async def never(context: Caller) -> bytes:
    await asyncio.Event().wait()
    return b"null"


def brought(result: Any) -> Later[Any]:
    """Return a result that is completed by a later callback."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    if isinstance(result, Exception):
        loop.call_soon(future.set_exception, result)
    else:
        loop.call_soon(future.set_result, result)
    return Later.from_future(future)


@registry.method("asked", params=SUM, encode=decimal, result={}, summary="Adds.")
def ask(context: Caller, a: int, b: int, c: int) -> Later[int]:
    return brought(a).then(lambda brought_a: brought_a + b + c)


@registry.method("askedTwice", params=SUM, encode=decimal, result={}, summary="Adds.")
def ask_twice(context: Caller, a: int, b: int, c: int) -> Later[int]:
    return brought(a).then(lambda found: ask(context, found, b, c))


@registry.method("askedInVain", result={}, summary="Does not return.")
def ask_in_vain(context: Caller) -> Later[bytes]:
    return Later.from_future(asyncio.get_running_loop().create_future())


@registry.method("askedTwiceInVain", result={}, summary="Does not return.")
def ask_twice_in_vain(context: Caller) -> Later[bytes]:
    return brought(None).then(lambda _: Later.from_coroutine(never(context)))


@registry.method("askedBroken", result={}, summary="Fails in a known way, later.")
def ask_broken(context: Caller) -> Later[bytes]:
    return brought(Broken())


@registry.method("askedCrash", result={}, summary="Crashes upon what it is told.")
def ask_crash(context: Caller) -> Later[bytes]:
    return brought({}).then(lambda found: found["a secret of ours"])


@registry.method("crash", result={}, summary="Crashes.")
def crash(context: Caller) -> bytes:
    raise KeyError("a secret of ours")


@registry.method("crashLater", result={}, summary="Crashes while it is waited for.")
async def crash_later(context: Caller) -> bytes:
    await asyncio.sleep(0)
    raise KeyError("a secret of ours")


@registry.method("broken", result={}, summary="Fails in a known way.")
def broken(context: Caller) -> bytes:
    raise Broken


@registry.method("brokenLater", result={}, summary="Fails in a known way, later.")
async def broken_later(context: Caller) -> bytes:
    raise Broken


@registry.method("unencodable", encode=decimal, result={}, summary="Returns a string.")
def unencodable(context: Caller) -> str:
    return "no number"


@registry.method("special", result={}, summary="Is granted.", capability="special")
def special(context: Caller) -> bytes:
    return b"1"


def call(method: str, *params: object, call_id: object = 1) -> dict[str, object]:
    """Return a request object."""
    return {"jsonrpc": "2.0", "id": call_id, "method": method, "params": list(params)}


def respond(body: bytes | object, limits: Limits = GENEROUS) -> Reply:
    """Answer a body, or a value that is encoded as one. Return the complete reply."""
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    dispatcher = Dispatcher(registry, limits, {Broken: Gone})

    async def wait() -> Answer:
        return await dispatcher.respond(raw, Caller())

    answer = asyncio.run(wait())
    return answer if isinstance(answer, Reply) else Reply(200, bytes(answer))


def told(body: bytes | object, limits: Limits = GENEROUS) -> Any:
    """Return the decoded JSON of the response to a body."""
    return orjson.loads(respond(body, limits).body)


def error(code: int, message: str, call_id: object = 1) -> dict[str, object]:
    """Return the response with an error object of geth's form."""
    return {
        "jsonrpc": "2.0",
        "id": call_id,
        "error": {"code": code, "message": message},
    }
