from __future__ import annotations

import asyncio
import gc
import logging
import time
import tracemalloc
from typing import Any

import pytest

from jsonrpc.answers import LONG_BYTES, Answer, Parts, Reply
from jsonrpc.calls import Call
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import RpcError
from tests.jsonrpc import support
from tests.jsonrpc.support import call, error, registry, respond, told
from tests.support.coroutines import scenario
from tests.support.waiting import loop_turns, until

INVALID = {"code": -32600, "message": "invalid request"}


def test_result_stands_behind_the_id_that_was_sent():
    reply = respond(b'{"jsonrpc":"2.0","id":7,"method":"sum","params":[1,2]}')
    assert reply == Reply(200, b'{"jsonrpc":"2.0","id":7,"result":103}')


@pytest.mark.parametrize("method", ["later", "asked", "askedTwice"])
def test_method_that_is_waited_for_is_answered_alike(method):
    for arguments in (1, 2, 3), (1, 2), (1, "x"):
        assert told(call(method, *arguments)) == told(call("sum", *arguments))
        assert told([call(method, *arguments)]) == told([call("sum", *arguments)])


def test_result_of_one_future_is_answered_without_a_task():
    async def answer() -> Answer:
        caller = support.Caller()
        dispatcher = Dispatcher(registry, Limits(), {})
        body = support.orjson.dumps(call("askedTwice", 1, 2))
        answer = dispatcher.respond(body, caller)
        assert not answer.is_done
        tasks: list[int] = []
        answer.when_done(lambda _: tasks.append(len(asyncio.all_tasks())))
        await until(lambda: answer.is_done)
        assert tasks == [1], "this test's own"
        assert caller.booked == [("askedTwice", 1)]
        return answer.result()

    assert asyncio.run(answer()) == b'{"jsonrpc":"2.0","id":1,"result":103}'


def test_result_without_io_is_complete_at_once():
    body = support.orjson.dumps(call("sum", 1, 2))
    answer = Dispatcher(registry, Limits(), {}).respond(body, support.Caller())
    assert answer.is_done
    assert answer.result() == b'{"jsonrpc":"2.0","id":1,"result":103}'


def test_nothing_is_null():
    assert told(call("nothing")) == {"jsonrpc": "2.0", "id": 1, "result": None}


IDS = [
    *("0", "-5", "true", "false", "null", '"a"', '""', "18446744073709551615"),
    *("1.50", "1e3", "1E400", "-0.0", "123456789012345678901234567890", "9" * 5000),
    *(r'"\ud800"', '"\N{GRINNING FACE}"', r'"\"\\"'),
]


@pytest.mark.parametrize("call_id", IDS)
def test_id_is_echoed_as_it_was_sent(call_id):
    sent = f'{{"jsonrpc":"2.0","id":{call_id},"method":"nothing"}}'
    answer = f'{{"jsonrpc":"2.0","id":{call_id},"result":null}}'
    assert respond(sent.encode()).body.decode() == answer
    assert respond(f"[{sent}]".encode()).body.decode() == f"[{answer}]"


def test_unusual_id_leaves_the_arguments_as_they_are():
    body = b'{"jsonrpc":"2.0","id":1.5,"method":"sum","params":[1,2]}'
    assert told(body)["result"] == 103


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b" ", b"{", b"nul", b"[1,", b'{"a":}', b"{} {}", b"\xff", b'"\xff"'),
        *(b"NaN", b"Infinity", b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"a":' * 100_000),
        b"[" * 50_000 + b'"\\ud800"' + b"]" * 50_000,
        b'{"id":1e5,"id":NaN}',
    ],
)
def test_what_is_no_json_is_a_parse_error(body):
    reply = respond(body)
    assert reply.status == 400
    assert reply.body == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}'
    )


@pytest.mark.parametrize(
    ("body", "call_id"),
    [
        *((b"1", None), (b'"x"', None), (b"null", None), (b"true", None)),
        (b"{}", None),
        (b'{"jsonrpc":"2.0","method":"sum","id":{}}', None),
        (b'{"jsonrpc":"2.0","method":"sum","id":[1]}', None),
        (b'{"jsonrpc":"1.0","method":"sum","id":1}', 1),
        (b'{"jsonrpc":2.0,"method":"sum","id":1}', 1),
        (b'{"method":"sum","id":1}', 1),
        (b'{"jsonrpc":"2.0","id":"a"}', "a"),
        (b'{"jsonrpc":"2.0","method":"","id":1}', 1),
        (b'{"jsonrpc":"2.0","method":5,"id":1}', 1),
        (b'{"jsonrpc":"2.0","method":["sum"],"id":1}', 1),
        (b'{"jsonrpc":"2.0","method":null}', None),
    ],
)
def test_what_is_no_request_is_an_invalid_request(body, call_id):
    reply = respond(body)
    assert reply.status == 400
    assert told(body) == {"jsonrpc": "2.0", "id": call_id, "error": INVALID}
    assert respond(b"[" + body + b"]") == Reply(200, b"[" + reply.body + b"]")


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","method":"sum","params":[1,2]}',
        b'{"jsonrpc":"2.0","method":"unknown"}',
        b'{"jsonrpc":"2.0","method":"crash"}',
        b'{"jsonrpc":"2.0","id":1,"result":5}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}',
    ],
)
def test_notification_or_response_gets_an_empty_answer(body):
    assert respond(body) == Reply(200, b"")
    assert respond(b"[" + body + b"," + body + b"]") == Reply(200, b"")


def test_last_of_duplicate_members_counts():
    body = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x","method":"nothing"}'
    assert told(body) == {"jsonrpc": "2.0", "id": 2, "result": None}


def test_unknown_method_is_named():
    message = "the method eth_foo does not exist/is not available"
    assert told(call("eth_foo")) == error(-32601, message)
    assert respond(call("eth_foo")).status == 200


def test_name_with_a_lone_surrogate_is_sent_escaped():
    body = rb'{"jsonrpc":"2.0","id":1,"method":"\ud800"}'
    assert rb"the method \ud800 does not" in respond(body).body


def test_subscription_is_not_supported():
    answer = error(-32601, "notifications not supported")
    assert told(call("eth_subscribe", "newHeads")) == answer


@pytest.mark.parametrize(("name", "length"), [("m" * 2049, 2049), ("é" * 1025, 2050)])
def test_long_name_is_reported_by_its_length(name, length):
    message = f"method name too long: {length} > 2048"
    assert told(call(name)) == error(-32600, message)


def test_name_of_2048_bytes_is_merely_unknown():
    assert told(call("m" * 2048))["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["crash", "crashLater", "askedCrash", "unencodable"])
@pytest.mark.parametrize("in_batch", [False, True])
def test_crash_is_logged_and_not_reported(method, in_batch, caplog):
    body = [call(method)] if in_batch else call(method)
    answer = told(body)
    expected = error(-32603, "method handler crashed")
    assert answer == ([expected] if in_batch else expected)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == f"{method} crashed in request request-7"
    assert record.exc_info is not None


@pytest.mark.parametrize("method", ["broken", "brokenLater", "askedBroken"])
def test_known_failure_is_translated(method, caplog):
    assert respond(call(method)).status == 503
    assert told(call(method))["error"]["data"]["reason"] == "gone"
    assert respond([call(method)]).status == 200
    assert not caplog.records


def test_capability_is_asked_for_before_the_parameters():
    assert respond(call("special", "too", "many")).status == 403
    assert told([call("special")])[0]["error"] == {
        "code": -32002,
        "message": "denied",
        "data": {"reason": "denied", "see": "https://node.example/docs/errors#denied"},
    }


@pytest.mark.parametrize("method", ["never", "askedInVain", "askedTwiceInVain"])
def test_call_that_takes_too_long_is_timed_out(method):
    late = error(-32002, "request timed out")
    assert told(call(method), Limits(seconds=0.01)) == late
    assert told([call(method)], Limits(seconds=0.01)) == [late]


def test_batch_keeps_its_order():
    batch = [
        call("later", 1, 2, call_id=1),
        call("sum", 3, 4, call_id="b"),
        {"jsonrpc": "2.0", "method": "sum", "params": [1, 1]},
        7,
        call("unknown", call_id=3),
        call("later", 5, 6, call_id=1),
    ]
    answers = told(batch)
    assert [answer["id"] for answer in answers] == [1, "b", None, 3, 1]
    assert [answer.get("result") for answer in answers] == [103, 107, None, None, 111]
    assert respond(batch).status == 200


def test_empty_batch_is_one_error_object():
    assert told([]) == error(-32600, "empty batch", call_id=None)
    assert respond([]).status == 200


def test_batch_may_hold_as_many_calls_as_the_limit():
    answers = told([call("nothing", call_id=i) for i in range(1000)])
    assert [answer["id"] for answer in answers] == list(range(1000))


def test_larger_batch_is_one_error_under_the_first_calls_id():
    notification = {"jsonrpc": "2.0", "method": "sum"}
    batch = [notification, *[call("crash", call_id=i) for i in range(5, 1006)]]
    assert told(batch) == [error(-32600, "batch too large", call_id=5)]
    assert respond(batch).status == 200


def test_batch_of_a_million_is_refused_without_looking_at_each_message():
    body = b"[" + b"1," * 1_500_000 + b"1]"
    started = time.process_time()
    assert told(body) == [error(-32600, "batch too large", call_id=None)]
    # More time than a slow machine needs, but less than a check of each message takes.
    assert time.process_time() - started < 5


def test_calls_of_a_batch_are_under_way_together():
    together = asyncio.Barrier(3)
    registry = support.MethodRegistry()

    @registry.method("meet", result={}, summary="Waits for the others.")
    async def meet(context: support.Caller) -> bytes:
        await together.wait()
        return b"1"

    async def answer():
        dispatcher = Dispatcher(registry, Limits(seconds=5), {})
        body = support.orjson.dumps([call("meet")] * 3)
        return await dispatcher.respond(body, support.Caller())

    assert asyncio.run(answer()).count(b'"result":1') == 3


async def answer_held(
    bodies: list[tuple[int, bytes]],
    limits: Limits,
    begun: list[int],
    held: asyncio.Event,
) -> list[Answer]:
    """Answer bodies, each of a customer, whose calls of `hold` wait for an event."""
    registry = support.MethodRegistry()

    async def hold(context: support.Caller) -> bytes:
        begun.append(context.customer)
        await held.wait()
        return b"1"

    for name in "hold", "holdSlowly":
        registry.method(name, result={}, summary="Waits.", is_slow=name != "hold")(hold)
    dispatcher = Dispatcher(registry, limits, {})
    answers = []
    for customer, body in bodies:
        caller = support.Caller()
        caller.customer = customer
        answers.append(dispatcher.respond(body, caller))
    return await asyncio.gather(*answers)


def batch_of(method: str, count: int) -> bytes:
    return support.orjson.dumps([call(method)] * count)


@pytest.mark.parametrize(
    ("method", "count", "expected"),
    [
        ("hold", 100, {1: 200, 2: 200}),  # two batches of each key
        ("hold", 10, {1: 200, 2: 200}),
        # One batch of each key. Eight slow calls run at a time.
        ("holdSlowly", 10, {1: 8, 2: 8}),
    ],
)
def test_batches_beyond_the_limits_wait(method, count, expected):
    limits = Limits(response_bytes=1000, in_progress_bytes=4000)
    bodies = [
        (customer, batch_of(method, count)) for customer in (1, 2) for _ in range(30)
    ]
    begun: list[int] = []

    async def scenario() -> list[Answer]:
        held = asyncio.Event()
        answers = asyncio.ensure_future(answer_held(bodies, limits, begun, held))
        await until(lambda: len(begun) >= sum(expected.values()))
        await loop_turns()
        assert {customer: begun.count(customer) for customer in expected} == expected
        held.set()
        return await answers

    answers = asyncio.run(scenario())
    assert [answer.count(b'"result":1') for answer in answers] == [count] * 60


@scenario
async def test_slow_batches_do_not_keep_others_waiting():
    limits = Limits(response_bytes=1000, in_progress_bytes=1000)
    bodies = [(1, batch_of("holdSlowly", 1))] * 20 + [(1, batch_of("hold", 1))]
    begun: list[int] = []
    held = asyncio.Event()
    answers = asyncio.ensure_future(answer_held(bodies, limits, begun, held))
    await until(lambda: len(begun) == 2)
    held.set()
    await answers


def test_batch_that_waits_for_others_until_the_deadline_is_timed_out():
    limits = Limits(response_bytes=1000, in_progress_bytes=2000, seconds=0.1)
    bodies = [(1, batch_of("hold", 100))] * 3
    answers = asyncio.run(answer_held(bodies, limits, [], asyncio.Event()))
    late = [error(-32002, "request timed out")] * 100
    assert [support.orjson.loads(answer) for answer in answers] == [late] * 3


def called(
    method: str, *params: object, room: int = 1000, limits: Limits = support.GENEROUS
) -> tuple[bytes | RpcError, support.Caller]:
    """Return the result or the error of `Dispatcher.call`, and the caller."""
    caller = support.Caller()
    dispatcher = Dispatcher(registry, limits, {support.Broken: support.Gone})

    async def outcome() -> bytes | RpcError:
        try:
            prepared = dispatcher.prepare_call(method, list(params), caller)
            return await dispatcher.call(prepared, caller, room)
        except RpcError as error:
            return error

    return asyncio.run(outcome()), caller


def test_call_without_an_envelope_is_charged_and_limited_as_others_are():
    assert called("sum", 1, 2)[0] == called("later", 1, 2)[0] == b"103"
    assert called("nothing")[0] == b"null"
    assert called("fill", 2000, room=100)[0] == b'"%b"' % (b"x" * 98)
    _, caller = called("sum", 1, 2)
    assert (caller.balance, caller.booked) == (1, [("sum", 1)])
    for method, code, charged in [
        ("broken", -32603, 0),
        ("brokenLater", -32603, 0),
        ("crash", -32603, 0),
        ("special", -32002, 1),
        ("unencodable", -32603, 0),
        ("unknown", -32601, 1),
    ]:
        failed, caller = called(method)
        assert isinstance(failed, RpcError)
        assert (failed.code, caller.balance) == (code, charged), method
    failed, _ = called("sum", 1)
    assert "missing value for required argument 1" in str(failed)
    soon = Limits(seconds=0.01)
    for method in "never", "askedInVain":
        failed, caller = called(method, limits=soon)
        assert (str(failed), caller.balance) == ("request timed out", 1)


def test_messages_of_a_batch_are_not_kept_while_its_calls_wait():
    junk = (
        b'{"jsonrpc":"2.0","id":2,"method":"x","params":[' + b"[]," * 200_000 + b"1]}"
    )
    body = b"[%b,%b]" % (support.orjson.dumps(call("never")), junk)

    async def scenario() -> int:
        dispatcher = Dispatcher(registry, Limits(), {})
        answer = asyncio.ensure_future(dispatcher.respond(body, support.Caller()))
        await loop_turns()
        assert not answer.done()
        answer.cancel()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        assert asyncio.run(scenario()) < 5_000_000
    finally:
        tracemalloc.stop()


def test_rest_of_a_batch_is_refused_once_the_response_is_full():
    limits = Limits(response_bytes=1000)
    batch = [call("big", 600, call_id=i) for i in range(250)]
    batch.insert(200, {"jsonrpc": "2.0", "method": "big", "params": [600]})
    answers = told(batch, limits)
    assert [answer["id"] for answer in answers] == list(range(250))
    # The response that exceeds the limit is still delivered.
    assert ["result" in answer for answer in answers[:3]] == [True, True, False]
    assert answers[2:] == [
        error(-32003, "response too large", call_id=i) for i in range(2, 250)
    ]


def test_calls_that_take_room_get_what_the_calls_before_have_left():
    calls = [("fill", 5000), ("big", 700), ("fill", 200), ("fill", 5000), ("big", 99)]
    calls += [("fill", 5000)]
    batch = [call(*each, call_id=i) for i, each in enumerate(calls)]
    answers = told(batch[1:], Limits(response_bytes=1000))
    assert [len(each.get("result", "")) + 2 for each in answers[:4]] == [
        *(700, 200, 100, 99)
    ]
    assert answers[4] == error(-32003, "response too large", call_id=5)
    assert len(told(batch[0])["result"]) + 2 == 1000  # alone: the default
    never = [call("never", call_id=0), call("fill", 5, call_id=1)]
    answers = told(never, Limits(seconds=0.05))
    assert answers[1] == error(-32002, "request timed out", call_id=1)


def test_long_errors_fill_the_response_of_a_batch_as_well():
    registry = support.MethodRegistry()

    @registry.method("fail", result={}, summary="Fails.")
    async def fail(context: support.Caller) -> bytes:
        raise RpcError("x" * 6000)

    async def answers() -> list[dict[str, Any]]:
        dispatcher = Dispatcher(registry, Limits(response_bytes=10_000), {})
        body = support.orjson.dumps([call("fail", call_id=i) for i in range(250)])
        answer = await dispatcher.respond(body, support.Caller())
        return support.orjson.loads(bytes(answer))

    messages = [answer["error"]["message"] for answer in asyncio.run(answers())]
    assert messages == ["x" * 6000] * 2 + ["response too large"] * 248


def test_rest_of_a_batch_is_timed_out_at_the_deadline():
    batch = [call("sum", 1, 2, call_id=0), call("never", call_id=1)]
    batch += [call("nothing", call_id=i) for i in range(2, 150)]
    answers = told(batch, Limits(seconds=0.05))
    late = [error(-32002, "request timed out", call_id=1)]
    assert answers[0]["result"] == 103
    assert answers[1:2] == late
    assert all("result" in answer for answer in answers[2:100])
    assert {answer["error"]["code"] for answer in answers[100:]} == {-32002}


def test_calls_are_given_up_with_the_request():
    registry = support.MethodRegistry()
    begun, given_up = [], []

    @registry.method("wait", result={}, summary="Waits.")
    async def wait(context: support.Caller) -> bytes:
        begun.append(True)
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            given_up.append(True)
            raise

    async def cancel():
        dispatcher = Dispatcher(registry, Limits(), {})
        body = support.orjson.dumps([call("wait")] * 3)
        task = asyncio.ensure_future(dispatcher.respond(body, support.Caller()))
        await until(lambda: len(begun) == 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(cancel())
    assert given_up == [True] * 3


def refuse(body: bytes) -> Reply:
    dispatcher = Dispatcher(support.registry, Limits(), {})
    return dispatcher.refuse(body, support.Denied(), support.Caller.site)


def test_refused_call_is_reported_under_its_id():
    reply = refuse(b'{"jsonrpc":"2.0","id":1.50,"method":"nothing"}')
    assert reply.status == 403
    assert reply.body.startswith(b'{"jsonrpc":"2.0","id":1.50,"error":{"code":-32002')


@pytest.mark.parametrize(
    "body", [b"", b"no json", b"5", b"[]", b'{"jsonrpc":"2.0","method":"nothing"}']
)
def test_refused_body_without_an_id_is_reported_under_null(body):
    reply = refuse(body)
    assert reply.status == 403
    assert reply.body.startswith(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32002')


def test_refused_batch_is_an_array_with_an_error_for_each_call():
    batch = [
        call("nothing", call_id=1),
        {"jsonrpc": "2.0", "method": "nothing"},
        5,
        call("x", call_id="b"),
    ]
    reply = refuse(support.orjson.dumps(batch))
    answers = support.orjson.loads(reply.body)
    assert reply.status == 403
    assert [answer["id"] for answer in answers] == [1, None, "b"]
    assert {answer["error"]["message"] for answer in answers} == {"denied"}


def test_refused_batch_that_is_too_large_is_reported():
    reply = refuse(support.orjson.dumps([call("nothing")] * 1001))
    assert support.orjson.loads(reply.body) == [error(-32600, "batch too large")]


@pytest.mark.parametrize(
    "message",
    [
        *({}, call("absent"), call("sum", 1), call("sum", "x", 2), call("sum", 1, 2)),
        *(call("special"), call("broken"), call("brokenLater"), call("later", 1, 2)),
        *(call("asked", 1, 2), call("askedTwice", 1, 2), call("askedInVain")),
        call("askedTwiceInVain"),
        call("askedBroken"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda message: message, lambda message: [message]])
def test_answered_calls_are_gone_without_the_garbage_collector(message, wrap):
    def left() -> int:
        return sum(type(one) is Call for one in gc.get_objects())

    gc.collect()  # garbage of other tests
    gc.freeze()  # `get_objects` returns none of the objects that exist now
    gc.disable()
    try:
        respond(wrap(message), Limits(seconds=0.01))
        assert left() == 0
    finally:
        gc.enable()


def test_cancelled_request_is_not_booked():
    async def cancel() -> list[tuple[str | None, int]]:
        caller = support.Caller()
        dispatcher = Dispatcher(registry, Limits(), {})
        answer = dispatcher.respond(support.orjson.dumps(call("askedInVain")), caller)
        task = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert isinstance(answer.error, asyncio.CancelledError)
        return caller.booked

    assert asyncio.run(cancel()) == []


@pytest.mark.parametrize("size", [LONG_BYTES - 1, LONG_BYTES, 100_000])
def test_long_result_is_enclosed_without_being_copied(size):
    body = support.orjson.dumps(call("big", size))
    dispatcher = Dispatcher(registry, Limits(), {})
    answer = dispatcher.respond(body, support.Caller()).result()
    assert isinstance(answer, Parts) == (size >= LONG_BYTES)
    assert isinstance(answer, bytes | Parts)
    assert bytes(answer) == b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % (
        b"x" * (size - 2)
    )
    assert len(answer) == len(bytes(answer))
