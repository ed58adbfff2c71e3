"""Final costs of calls: a call that fails early costs less than its price."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import InvalidParams, RequestTimedOut, RpcError
from jsonrpc.params import Param
from jsonrpc.registry import MethodRegistry
from tests.jsonrpc.support import Caller, call

registry = MethodRegistry()
PRICE = 20


class NotThere(RpcError):
    """Raised when an object is not found."""

    text = "not there"


class Wasted(RpcError):
    """Raised when a call fails after all of its work."""

    costs_full_price = True


FAILURES = {
    "params": InvalidParams,
    "none": NotThere,
    "wasted": Wasted,
    "bug": KeyError,
}


def fail(how: str) -> bytes:
    if how == "big":
        return b'"' + b"x" * 500 + b'"'
    if how in FAILURES:
        raise FAILURES[how]
    return b"true"


def word(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("not a word")
    return value


HOW = [Param("how", word)]


@registry.method("dear", params=HOW, result={}, summary="Is dear.", credits=PRICE)
def dear(context: Caller, how: str) -> bytes:
    return fail(how)


@registry.method("later", params=HOW, result={}, summary="Is slow.", credits=PRICE)
async def later(context: Caller, how: str) -> bytes:
    await asyncio.sleep(60 if how == "never" else 0)
    return fail(how)


def booked(body: object) -> list[tuple[str | None, int]]:
    """Answer a body, and return the recorded calls. Their costs add up to the charge."""
    caller = Caller()
    limits = Limits(seconds=0.05, response_bytes=800)
    dispatcher = Dispatcher(registry, limits, {})

    async def wait() -> None:
        await dispatcher.respond(orjson.dumps(body), caller)

    asyncio.run(wait())
    assert caller.balance == sum(credits for _, credits in caller.booked)
    return caller.booked


@pytest.mark.parametrize("method", ["dear", "later"])
@pytest.mark.parametrize(
    ("params", "credits"),
    [
        (["fine"], PRICE),
        ([], 1),
        ([5], 1),
        (["params"], 1),
        (["none"], 1),
        (["wasted"], PRICE),
        (["bug"], 0),
    ],
)
def test_call_costs_its_price_only_if_the_work_was_done(method, params, credits):
    assert booked(call(method, *params)) == [(method, credits)]
    batch = [call(method, *params), call("dear", "fine")]
    assert booked(batch) == [(method, credits), ("dear", PRICE)]


def test_unknown_method_costs_one():
    assert booked(call("nothing")) == [(None, 1)]
    assert booked([call("nothing"), 7]) == [(None, 1), (None, 1)]


def test_call_that_timed_out_costs_its_price():
    assert RequestTimedOut.costs_full_price
    assert booked(call("later", "never")) == [("later", PRICE)]


def test_rest_of_a_batch_that_is_not_begun_costs_one_each():
    found = booked([call("later", "never")] + [call("dear", "fine")] * 120)
    assert found[0] == ("later", PRICE)
    assert found[-1] == ("dear", 1)
    assert {credits for _, credits in found} == {PRICE, 1}
    found = booked([call("dear", "big")] * 130)
    # 100 calls are in progress together. Those without room were executed as well.
    assert [credits for _, credits in found] == [PRICE] * 100 + [1] * 30
