from __future__ import annotations

import asyncio
import gc
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import orjson
import pytest

from jsonrpc.answers import Answer, Reply
from jsonrpc.departure import stay
from jsonrpc.dispatch import Limits
from jsonrpc.params import Param
from jsonrpc.registry import MethodRegistry
from jsonrpc.stream import Stream
from keys.grants import Grant
from keys.permits import NO_PERMITS
from nodeapi import methods
from nodeapi.endpoint.calls import LONG_BYTES, Calls, LongBodies
from nodeapi.methods.context import Context
from nodeapi.methods.eth_calls import call_task
from server.request_id import RequestId
from tests.support import chains, edge, sample
from tests.support.live import Live, live_service
from tests.support.waiting import PATIENCE_SECONDS

JUNK = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[%b1]}' % (
    b"[]," * 1_000_000
)
"""An invalid body of 3 MB, which takes long to parse."""


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    chains.import_blocks("sample", sample.genesis(), sample.raw_blocks()[:1])
    with live_service() as live:
        yield live


def test_loop_turns_while_long_bodies_are_prepared_one_at_a_time() -> None:
    has_turned = threading.Event()
    in_progress = 0

    def prepare() -> bool:
        nonlocal in_progress
        in_progress += 1
        assert not gc.isenabled()
        assert in_progress == 1
        has_turned.clear()
        turned = has_turned.wait(PATIENCE_SECONDS)
        in_progress -= 1
        return turned

    async def turn() -> None:
        while True:
            has_turned.set()
            await asyncio.sleep(0)

    async def scenario() -> list[bool]:
        turning = asyncio.create_task(turn())
        bodies = LongBodies()
        prepared = await asyncio.gather(
            *(bodies.prepare(prepare, "customer") for _ in range(5))
        )
        turning.cancel()
        return prepared

    assert asyncio.run(scenario()) == [True] * 5
    assert gc.isenabled()


@pytest.mark.parametrize("is_batch", [False, True])
def test_arguments_of_long_bodies_only_are_decoded_in_a_thread(is_batch: bool) -> None:
    registry = MethodRegistry()
    threads: list[threading.Thread] = []

    def decode(value: str) -> str:
        threads.append(threading.current_thread())
        return value[:1]

    @registry.method("first", params=[Param("text", decode)], result={}, summary="-")
    def first(context: Context, text: str) -> bytes:
        assert threading.current_thread() is threading.main_thread()
        return orjson.dumps(text)

    async def ask(size: int) -> Answer:
        calls = Calls(registry, Limits())
        grant = Grant(1, "", None, NO_PERMITS, None)
        context = Context(RequestId(), grant, edge.HIVE, edge.Store())
        call = {"jsonrpc": "2.0", "id": 1, "method": "first", "params": ["x" * size]}
        body = orjson.dumps([call] if is_batch else call)
        return await calls.respond(body, context, stay)

    for size in (100, LONG_BYTES):
        answer = asyncio.run(ask(size))
        body = answer.body if isinstance(answer, Reply) else answer
        assert not isinstance(body, Stream)
        assert b'"result":"x"' in bytes(body)
    main = threading.main_thread()
    assert [thread is main for thread in threads] == [True, False]


def test_overrides_are_decoded_to_the_json_of_a_task() -> None:
    """The event loop therefore has no work with them."""
    account = {"nonce": "0x1", "stateDiff": {"0x" + "01" * 32: "0x" + "02" * 32}}
    call = {"to": "0x" + "aa" * 20, "data": "0x"}
    for method in ("eth_call", "eth_estimateGas", "trace_call"):
        params = {param.name: param for param in registered(method)}
        asked = params["call"].decoder(call)
        state = params["stateOverrides"].decoder({"0x" + "BB" * 20: account})
        block = params["blockOverrides"].decoder({"number": "0x5", "ignored": 2**70})
        arguments = orjson.loads(orjson.dumps(call_task(asked, state, block)))
        assert arguments["state"] == {"0x" + "bb" * 20: account}
        assert arguments["block"] == {"Number": "0x5"}
        assert params["stateOverrides"].decoder({}) is None


def test_many_calls_are_decoded_to_the_json_of_a_task() -> None:
    call = {"to": "0x" + "aa" * 20}
    (calls, _) = registered("trace_callMany")
    asked = calls.decoder([[call, ["trace"]], [{}, []], [call, ["trace"]]] * 2)
    pairs = orjson.loads(orjson.dumps(asked.calls))
    assert pairs == [[call, 0], [{}, 1], [call, 0]] * 2
    assert asked.types == [{"trace"}, set()]
    assert list(asked.recipients) == [b"\xaa" * 20, None]


def registered(name: str) -> tuple[Param, ...]:
    """Return the parameters of one of the node's methods."""
    method = methods.registry.find(name)
    assert method is not None
    return method.signature.params


def test_others_are_answered_between_long_bodies(live: Live) -> None:
    """All bodies except for their last bytes arrive first."""
    head = (
        f"POST /v3/{live.new_key()} HTTP/1.1\r\nhost: x\r\n"
        f"content-type: application/json\r\ncontent-length: {len(JUNK)}\r\n\r\n"
    )
    longest = 0.0
    with live.api() as other, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(address_of(live)))
            for _ in range(16)
        ]
        for client in clients:
            client.sendall(head.encode() + JUNK[:-1])
        started = time.monotonic()
        for client in clients:
            client.sendall(JUNK[-1:])
        unanswered = clients
        while unanswered:
            asked = time.monotonic()
            assert other.result("eth_chainId") == "0x31773"
            longest = max(longest, time.monotonic() - asked)
            ready, _, _ = select.select(unanswered, [], [], 0)
            for client in ready:
                assert client.recv(100).startswith(b"HTTP/1.1 200 ")
            unanswered = [each for each in unanswered if each not in ready]
            assert time.monotonic() - started < PATIENCE_SECONDS
        duration = time.monotonic() - started
    assert longest < duration / 3


def address_of(live: Live) -> tuple[str, int]:
    host, port = live.server.listeners[0].getsockname()
    return host, port
