from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import orjson
import pytest

from jsonrpc.answers import Reply
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import RpcError
from jsonrpc.registry import MethodRegistry
from keys.grants import Grant
from keys.limiter.errors import RateLimited
from keys.limiter.gcra import Limits as KeyLimits
from keys.limiter.limiter import Limiter
from keys.permits import NO_PERMITS, Permit, Permits
from nodeapi.errors.access import (
    MethodNotEntitled,
    TracerNotAvailable,
    TracerNotEntitled,
)
from nodeapi.methods.context import FREE_SECONDS, TRACE, Context
from tests.support import edge

HIVE = replace(edge.HIVE, tracers=frozenset({"prestateTracer", "callTracer"}))
HERE = (HIVE.id, TRACE)

traced = MethodRegistry()


@traced.method("debug_x", result={}, summary="X.", capability=TRACE)
def trace(context: Context) -> bytes:
    context.require_tracer("callTracer")
    return b"1"


def context(permits: Permits = NO_PERMITS, network=HIVE) -> Context:
    return Context(b"1", Grant(1, "", None, permits, None), network, edge.Store())


def error(of: Context, method: str = "debug_x") -> tuple[int, dict]:
    """Make a call that is rejected. Return the HTTP status and the error object."""
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method})
    answer = Dispatcher(traced, Limits(), {}).respond(body, of).result()
    assert isinstance(answer, Reply)
    return answer.status, orjson.loads(answer.body)["error"]


def test_method_is_for_keys_that_were_granted_it_on_the_network():
    status, told = error(context({(edge.OTHER.id, TRACE): Permit()}))
    assert status == 403
    assert told == {
        "code": -32002,
        "message": "debug_x is not enabled for this API key on hive"
        "; ask the provider's support about custom plans",
        "data": {
            "reason": "method_not_entitled",
            "see": "http://127.0.0.1:8000/docs/errors#method_not_entitled",
            "request_access": "http://127.0.0.1:8000/dashboard/keys/1/tracing/hive",
            "method": "debug_x",
            "network": "hive",
        },
    }
    (method,) = traced
    context({HERE: Permit()}).authorise(method)


def test_permit_ends_although_the_key_is_remembered():
    (method,) = traced
    context({HERE: Permit(expires_at=time.time() + 60)}).authorise(method)
    with pytest.raises(MethodNotEntitled) as caught:
        context({HERE: Permit(expires_at=1_600_000_000.0)}).authorise(method)
    assert caught.value.details["expired_at"] == "2020-09-13T12:26:40Z"
    assert caught.value.message.startswith(
        "debug_x is not enabled for this API key on hive"
        ": the entitlement expired on 2020-09-13T12:26:40Z; ask "
    )


def test_provider_names_the_contact_for_access(settings):
    settings.NODEAPI_SUPPORT_CONTACT = "support@example.org"
    _, told = error(context())
    assert told["message"].endswith("; ask support@example.org about custom plans")


def test_tracer_that_the_network_lacks_is_a_wrong_parameter():
    network = replace(HIVE, tracers=frozenset({"flatCallTracer", "4byteTracer"}))
    status, told = error(context({HERE: Permit()}, network))
    assert status == 200
    assert told == {
        "code": -32602,
        "message": 'invalid params: tracer "callTracer" is not available on hive'
        '; available: "4byteTracer", "flatCallTracer"',
        "data": {
            "reason": "tracer_not_available",
            "see": "http://127.0.0.1:8000/docs/errors#tracer_not_available",
            "tracer": "callTracer",
            "network": "hive",
            "available": ["4byteTracer", "flatCallTracer"],
        },
    }


def test_tracer_that_the_key_lacks_is_refused_and_the_granted_one_is_not():
    permits = {HERE: Permit(frozenset({"prestateTracer"}))}
    status, told = error(context(permits))
    assert status == 403
    assert told == {
        "code": -32002,
        "message": 'tracer "callTracer" is not enabled for this API key on hive'
        "; ask the provider's support about custom plans",
        "data": {
            "reason": "tracer_not_entitled",
            "see": "http://127.0.0.1:8000/docs/errors#tracer_not_entitled",
            "request_access": "http://127.0.0.1:8000/dashboard/keys/1/tracing/hive",
            "tracer": "callTracer",
            "network": "hive",
        },
    }
    context(permits).require_tracer("prestateTracer")
    context({HERE: Permit()}).require_tracer("callTracer")


@pytest.mark.parametrize(
    ("tracer", "spoken"),
    [
        ("structLog", "the struct logger (no tracer was named) is not"),
        ("javascript", "a JavaScript tracer is not"),
    ],
)
def test_tracer_that_was_not_named_is_described(tracer, spoken):
    with pytest.raises(TracerNotAvailable, match="invalid params: ") as caught:
        context({HERE: Permit()}).require_tracer(tracer)
    assert spoken in caught.value.message
    network = replace(HIVE, tracers=frozenset({tracer}))
    permits = {HERE: Permit(frozenset({"callTracer"}))}
    with pytest.raises(TracerNotEntitled) as refused:
        context(permits, network).require_tracer(tracer)
    assert refused.value.message.startswith(spoken)


def test_network_without_tracers_says_so():
    told = TracerNotAvailable("callTracer", "hive", [])
    assert told.message.endswith("not available on hive; available: none")
    assert told.details["available"] == []


def test_keys_without_tracing_learn_nothing_of_the_tracers():
    network = replace(HIVE, tracers=frozenset())
    with pytest.raises(RpcError) as caught:
        trace(context())
    assert caught.value.code == -32002
    assert error(context(NO_PERMITS, network))[1]["data"]["reason"] == (
        "method_not_entitled"
    )


def test_processor_time_beyond_a_tenth_of_a_second_is_charged_to_keys():
    limiter = Limiter(None)
    limits = KeyLimits(rate=1, burst=1000)
    grant = Grant(1, "", None, NO_PERMITS, None, limits=limits, owner_id=7)
    caller = replace(context(), grant=grant, limiter=limiter)
    wallet = replace(caller, user=8)
    assert (caller.customer, wallet.customer) == (7, 8)

    async def scenario() -> None:
        caller.charge_time(FREE_SECONDS)
        wallet.charge_time(60.0)
        await caller.charge(1)
        caller.charge_time(FREE_SECONDS + 2.0)
        await asyncio.sleep(0)
        with pytest.raises(RateLimited) as caught:
            await caller.charge(500)
        assert 1490 < caught.value.data["backoff_seconds"] <= 1501
        await limiter.stop()

    asyncio.run(scenario())
