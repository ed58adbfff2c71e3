"""A transaction with a trace of 100 MB, and its readers."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import psutil
import pytest

from keys.services import get_or_create_customer, issue_key
from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Api, Live, live_service, request
from tests.support.waiting import wait_until

ALICE = Signer("alice")
MEBIBYTE = 2**20
READERS = 50
READER_BYTES_PER_SECOND = 1024
MIN_BODY_BYTES = 100
WORDS = 64
ROUNDS = 4_000
GAS = 130_000 + 22 * ROUNDS
OPTIONS = {"enableMemory": True}

CODE = bytes.fromhex(
    f"5f61{32 * (WORDS - 1):04x}52"  # MSTORE into the last word
    "5b5a61ffff10600557"  # JUMPDEST; GAS, PUSH2 65535, LT: JUMPI back
    "00"
)
"""A loop until the gas is used up. Each trace entry contains the whole memory."""


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    genesis = fork_genesis("shanghai", ALICE)
    chain = ChainBuilder(genesis)
    chain.deploy(ALICE, CODE, gas=GAS)
    chain.block()
    chains.import_blocks("net", genesis, chain.blocks)
    limits = {
        "NODEAPI_TRACE_CONCURRENCY": str(READERS),
        "NODEAPI_TRACE_OWNER_BYTES": str(2**32),
    }
    with live_service(env=limits) as live:
        yield live


@pytest.fixture(scope="module")
def api(live: Live) -> Iterator[Api]:
    key = live.new_key(may_trace=True)
    with live.api("net", key, **{"accept-encoding": "identity"}) as api:
        yield api


def ask(live: Live, secret: str = "") -> socket.socket:
    """Request the trace with a small receive buffer. The default is the first key."""
    address = urlsplit(live.base_url)
    body = json.dumps(request("debug_traceBlockByNumber", "0x1", OPTIONS))
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect((address.hostname, address.port))
    client.sendall(
        f"POST /net/v3/{secret or live.secrets[0]} HTTP/1.1\r\nhost: x\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        f"{body}".encode()
    )
    return client


def test_long_trace_arrives_whole(api: Api) -> None:
    response = api.send(request("debug_traceBlockByNumber", "0x1", OPTIONS))
    trace = response.content
    assert len(trace) > 100_000_000
    assert response.headers["content-length"] == str(len(trace))
    entries = trace.count(b'"pc":')
    assert entries > 6 * ROUNDS
    assert trace.count(b'"memory":') == entries - 3
    assert trace.endswith(b"}]}")


def test_trace_that_takes_too_long_is_given_up_in_geths_words(api: Api) -> None:
    number = "0x1"
    block = api.result("eth_getBlockByNumber", number, False)
    told = (-32000, "execution timeout")
    assert api.error("debug_traceBlockByNumber", number, {"timeout": "1ms"}) == told
    program = "{step() { this.n = 1 }, fault() {}, result() { return this.n }}"
    options = {"tracer": program, "timeout": "1ms"}
    entries = api.result("debug_traceBlockByNumber", number, options)
    (name,) = block["transactions"]
    assert entries == [{"txHash": name, "error": "execution timeout"}]
    assert api.error("debug_traceTransaction", name, options) == told


def test_slow_readers_of_a_long_trace_hold_little_memory(live: Live, api: Api) -> None:
    process = psutil.Process(live.server.pids[0])
    before = most = process.memory_info().rss
    clients = [ask(live) for _ in range(READERS)]
    for _ in range(5):
        started = time.monotonic()
        for client in clients:
            assert client.recv(READER_BYTES_PER_SECOND)
        api.result("eth_blockNumber")
        most = max(most, process.memory_info().rss)
        time.sleep(max(0.0, started + 1 - time.monotonic()))
    for client in clients:
        client.close()
    assert most - before < 64 * MEBIBYTE


def test_unread_traces_of_a_customer_leave_room_for_others(live: Live) -> None:
    """`live` has imported the chain."""
    with ExitStack() as stack:
        share = {"NODEAPI_TRACE_OWNER_BYTES": "50000000"}
        other = stack.enter_context(live_service(env=share))
        first, second = (other.new_key(may_trace=True) for _ in range(2))
        bob = get_or_create_customer(email="bob@example.org")
        third = issue_key(owner=bob, may_trace=True).secret
        other.secrets.append(third)
        unread = stack.enter_context(ask(other, first))
        assert begins(unread) == 200
        asking = request("debug_traceBlockByNumber", "0x1", OPTIONS)
        with other.api("net", second) as api:
            refused = api.send(asking)
            assert refused.status_code == 429
            error = refused.json()["error"]
            assert error["code"] == -32005
            assert error["data"]["reason"] == "too_much_unread"
            assert begins(stack.enter_context(ask(other, third))) == 200
            unread.close()
            wait_until(lambda: begins(stack.enter_context(ask(other, second))) == 200)


def begins(client: socket.socket) -> int:
    """Return the status of a response that has begun."""
    received = b""
    while b"\r\n" not in received:
        received += client.recv(64)
    return int(received.split()[1])


def test_long_trace_has_no_room_in_a_batch(live: Live, api: Api) -> None:
    process = psutil.Process(live.server.pids[0])
    before = process.memory_info().rss
    calls = [request("debug_traceBlockByNumber", "0x1", OPTIONS)] * 3
    answers = api.send([*calls, request("eth_blockNumber")]).json()
    assert answers.pop()["result"] == "0x1"
    for answer in answers:
        assert answer["error"]["code"] == -32003
        assert answer["error"]["data"]["reason"] == "response_too_large"
        assert answer["error"]["data"]["size"] > 100_000_000
        assert "fromTx and toTx" in answer["error"]["message"]
    assert process.memory_info().rss - before < 64 * MEBIBYTE


def test_long_trace_of_a_service_that_is_killed_is_no_json(live: Live) -> None:
    with live_service() as other:
        other.new_key(may_trace=True)
        with ask(other) as client:
            received = b""
            # The headers may arrive before the body.
            while len(received.partition(b"\r\n\r\n")[2]) < MIN_BODY_BYTES:
                part = client.recv(MEBIBYTE)
                assert part, "hung up before the trace began"
                received += part
            os.kill(other.server.pids[0], signal.SIGKILL)
            with suppress(ConnectionResetError):
                while part := client.recv(MEBIBYTE):
                    received += part
    body = received.partition(b"\r\n\r\n")[2]
    assert body.startswith(b'{"jsonrpc":"2.0","id":1,"result":[{"txHash":"0x')
    with pytest.raises(json.JSONDecodeError):
        json.loads(body)
