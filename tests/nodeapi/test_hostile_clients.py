"""Clients that disconnect, read slowly, send too much, or open too many connections."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from django.utils import timezone

from evm.blocks import decode_block
from keys.models import ApiKey, KeyVersion
from keys.services import announce_key, revoke_version
from tests.support import copies, sample
from tests.support.live import Api, Live, live_service, request
from tests.support.raw_http import read_response
from tests.support.waiting import PATIENCE_SECONDS, wait_until

BLOCKS = [decode_block(raw) for raw in sample.raw_blocks()]
HEAD = "0x" + BLOCKS[-1].header.hash.hex()
CHAIN_ID = {"jsonrpc": "2.0", "id": 1, "result": "0x31773"}
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def database(module_db: None) -> None:
    copies.sample_chain()


@pytest.fixture(scope="module")
def live(database: None) -> Iterator[Live]:
    with live_service(workers=2) as live:
        yield live


@pytest.fixture(scope="module")
def api(live: Live) -> Iterator[Api]:
    with live.api() as api:
        yield api


@pytest.fixture(autouse=True)
def others_are_served(api: Api) -> Iterator[list[Any]]:
    """Make ordinary calls of another customer during each of these tests."""
    answers: list[Any] = []
    stopped = threading.Event()

    def ask() -> None:
        answers.append(api.ask("eth_chainId"))
        while not stopped.wait(0.005):
            answers.append(api.ask("eth_chainId"))

    other = threading.Thread(target=ask, daemon=True)
    other.start()
    yield answers
    stopped.set()
    other.join(PATIENCE_SECONDS)
    assert not other.is_alive()
    assert {json.dumps(answer) for answer in answers} == {json.dumps(CHAIN_ID)}


def connect(live: Live) -> socket.socket:
    address = urlsplit(live.base_url)
    return socket.create_connection((address.hostname, address.port), PATIENCE_SECONDS)


def head_of(live: Live, length: int | None, key: str = "") -> bytes:
    """Return a request's head; length: of its body, None for chunks."""
    size = (
        "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    )
    return (
        f"POST /v3/{key or live.secrets[0]} HTTP/1.1\r\nhost: x\r\n"
        f"content-type: application/json\r\n{size}\r\n\r\n"
    ).encode()


def resident_bytes(live: Live) -> int:
    return sum(psutil.Process(pid).memory_info().rss for pid in live.server.pids)


def test_clients_that_hang_up_are_forgotten(live: Live) -> None:
    call = json.dumps(request("eth_getBlockByHash", HEAD, True)).encode()
    whole = head_of(live, len(call)) + call
    for length in (5, 40, len(whole) - len(call), len(whole) - 3, len(whole)):
        for _ in range(30):
            with connect(live) as client:
                client.sendall(whole[:length])
    processes = [psutil.Process(pid) for pid in live.server.pids]
    wait_until(
        lambda: sum(len(each.net_connections("tcp")) for each in processes) <= 15
    )


def test_clients_that_do_not_read_are_given_no_memory(
    live: Live, others_are_served: list[Any]
) -> None:
    calls = [request("eth_getBlockByNumber", hex(n % 101), True) for n in range(1000)]
    body = json.dumps(calls).encode()
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(live)) for _ in range(4)]
        for client in clients:
            client.sendall(head_of(live, len(body)) + body)
        for client in clients:
            assert client.recv(1)
        count = len(others_are_served)
        wait_until(lambda: len(others_are_served) > count + 100)
        assert resident_bytes(live) < 400 * MEBIBYTE
    with connect(live) as client:
        client.sendall(head_of(live, len(body)) + body)
        status, answer = read_response(client)
    assert status == 200
    assert len(json.loads(answer)) == 1000


@pytest.mark.parametrize("where", ["head", "trailers"])
@pytest.mark.parametrize("filler", [b"a:b\r\n" * 10_000, b"f" * 50_000])
def test_endless_headers_are_cut_off(live: Live, where: str, filler: bytes) -> None:
    before = resident_bytes(live)
    head = head_of(live, None)
    start = head[:-2] if where == "head" else head + b"2\r\n{}\r\n0\r\n"
    with connect(live) as client, pytest.raises(ConnectionError):
        client.sendall(start + b"x-filler: ")
        for _ in range(2_000):
            client.sendall(filler)
    assert resident_bytes(live) - before < 60 * MEBIBYTE


def test_endless_trailers_of_a_refused_body_end_the_connection(live: Live) -> None:
    before = resident_bytes(live)
    head = head_of(live, None).replace(b"/v3/", b"/v4/v3/v3/")
    with connect(live) as client:
        client.sendall(head + b"2\r\n{}\r\n")
        assert read_response(client)[0] == 404
        client.sendall(b"0\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(300):
                client.sendall(b"a:b\r\n" * 10_000)
    assert resident_bytes(live) - before < 60 * MEBIBYTE


def test_large_body_in_the_wrong_place_is_reported(live: Live) -> None:
    with Api(live.base_url, "/v4/nowhere/v3") as api:
        assert api.post(b" " * 3 * MEBIBYTE).status_code == 413


def test_body_is_asked_for_only_when_it_is_wanted(live: Live) -> None:
    call = json.dumps(request("eth_chainId")).encode()
    expect = b"\r\nexpect: 100-continue\r\n\r\n"
    with connect(live) as client:
        client.sendall(head_of(live, len(call))[:-4] + expect)
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(call)
        assert read_response(client)[0] == 200
    with connect(live) as client:
        client.sendall(head_of(live, 6 * MEBIBYTE)[:-4] + expect)
        assert client.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_old_client_gets_one_answer_and_the_end(live: Live) -> None:
    call = json.dumps(request("eth_chainId")).encode()
    head = head_of(live, len(call)).replace(b"HTTP/1.1", b"HTTP/1.0")
    with connect(live) as client:
        client.sendall(head + call)
        status, body = read_response(client)
        assert (status, json.loads(body)) == (200, CHAIN_ID)
        assert client.recv(10) == b""


def test_requests_that_come_together_are_answered_in_order(live: Live) -> None:
    with connect(live) as client:
        for number in range(20):
            call = json.dumps({**request("eth_chainId"), "id": number}).encode()
            client.sendall(head_of(live, len(call)) + call)
        received = b""
        while received.count(b'"result"') < 20:
            received += client.recv(65536)
    found = re.findall(rb'"id":(\d+),"result":"0x31773"', received)
    assert [int(each) for each in found] == list(range(20))


def test_body_that_drips_is_given_up(live: Live) -> None:
    with live_service(env={"NODEAPI_REQUEST_TIMEOUT": "1"}) as impatient:
        start = time.monotonic()
        with connect(impatient) as client:
            client.sendall(head_of(live, 100) + b"{")
            status, body = read_response(client)
            assert client.recv(10) == b""
    assert time.monotonic() - start > 1
    assert status == 408
    assert json.loads(body)["error"]["data"]["reason"] == "body_too_slow"


@pytest.mark.parametrize("declared", [True, False])
def test_body_above_five_mebibytes_is_refused(live: Live, declared: bool) -> None:
    limit = 5 * MEBIBYTE
    with live.api() as api:
        call = json.dumps(request("eth_chainId")).encode()
        for length, status in ((limit, 200), (limit + 1, 413)):
            body = call.ljust(length)
            pieces = (body[n : n + 65536] for n in range(0, length, 65536))
            answer = api.post(body if declared else pieces)
            assert answer.status_code == status
            if status == 413:
                error = answer.json()["error"]
                assert (
                    error["message"] == f"request body too large: limit {limit} bytes"
                )
                assert answer.headers["connection"] == "close"
            else:
                assert answer.json() == CHAIN_ID


def test_batch_of_too_many_calls_is_refused_as_a_whole(live: Live) -> None:
    calls = [{**request("eth_chainId"), "id": number} for number in range(5, 1006)]
    with live.api() as api:
        assert len(api.send(calls[:1000]).json()) == 1000
        refusal = {"code": -32600, "message": "batch too large"}
        answer = api.send(calls)
        assert answer.status_code == 200
        assert answer.json() == [{"jsonrpc": "2.0", "id": 5, "error": refusal}]


def test_answers_of_a_batch_end_at_25_megabytes(live: Live) -> None:
    with live.api() as api:
        sizes = [
            (len(api.send(request("eth_getBlockByNumber", hex(n), True)).content), n)
            for n in range(101)
        ]
        size, number = max(sizes)
        limit = 25_000_000
        assert size * 1000 > limit * 1.1, "the sample has no block that is large enough"
        call = request("eth_getBlockByNumber", hex(number), True)
        calls = [{**call, "id": index} for index in range(1000)]
        answers = api.send(calls).json()
    assert [answer["id"] for answer in answers] == list(range(1000))
    full = [answer for answer in answers if "result" in answer]
    assert {json.dumps(each["result"]) for each in full} == {
        json.dumps(full[0]["result"])
    }
    # The response that exceeds the limit is still delivered.
    envelope = len(b'{"jsonrpc":"2.0","id":1,"result":}')
    delivered = limit // (size - envelope) + 1
    assert len(full) == delivered
    refusal = {"code": -32003, "message": "response too large"}
    assert all(each["error"] == refusal for each in answers[delivered:])


def test_idle_connections_cost_little(live: Live) -> None:
    before = resident_bytes(live)
    with ExitStack() as stack:
        for _ in range(2000):
            stack.enter_context(connect(live))
        with live.api() as api:
            assert api.result("eth_chainId") == "0x31773"
        assert resident_bytes(live) - before < 100 * MEBIBYTE


# Keys


def refused(api: Api) -> tuple[int, str]:
    """Return the status and `data.reason` of a rejected call."""
    answer = api.send({**request("eth_chainId"), "id": "x"})
    assert answer.json()["id"] == "x"
    return answer.status_code, answer.json()["error"]["data"]["reason"]


def version(secret: str) -> KeyVersion:
    return KeyVersion.objects.get(hint=f"{secret[:7]}…{secret[-4:]}")


def wait_until_refused(api: Api) -> tuple[int, str]:
    wait_until(lambda: api.send(request("eth_chainId")).status_code != 200)
    return refused(api)


def test_revoked_key_is_refused_at_once(live: Live) -> None:
    key = live.new_key()
    with live.each_worker("sample", key) as apis:
        revoke_version(version=version(key), reason="lost")
        for api in apis:
            assert wait_until_refused(api) == (401, "key_revoked")


def test_expired_key_is_refused_from_that_moment(live: Live) -> None:
    moment = timezone.now() + timedelta(seconds=3)
    with live.api(key=live.new_key(expires_at=moment)) as api:
        assert api.result("eth_chainId")
        assert wait_until_refused(api) == (401, "key_expired")
        assert timezone.now() >= moment


def test_disabled_key_is_refused_until_it_is_enabled(live: Live) -> None:
    key = live.new_key()
    api_key = version(key).api_key
    with live.each_worker("sample", key) as apis:
        ApiKey.objects.filter(pk=api_key.pk).update(is_enabled=False)
        announce_key(api_key)
        for api in apis:
            assert wait_until_refused(api) == (403, "key_disabled")
        ApiKey.objects.filter(pk=api_key.pk).update(is_enabled=True)
        announce_key(api_key)
        for api in apis:
            wait_until(lambda: api.send(request("eth_chainId")).status_code == 200)  # noqa: B023  # called at once


@pytest.mark.parametrize("network", ["", "sample"])
def test_unknown_key_is_refused_like_a_malformed_one(live: Live, network: str) -> None:
    other = live.new_key()
    KeyVersion.objects.filter(pk=version(other).pk).delete()
    told = set()
    for key in (other, "nk_x", "%00", "ünïcode", "n" * 5000):
        with live.api(network, key) as api:
            assert refused(api) == (401, "key_invalid")
            told.add(api.send(request("eth_chainId")).text)
    assert len(told) == 1
    with Api(live.base_url, f"/{network}/v3".replace("//", "/")) as api:
        assert refused(api) == (401, "key_required")


def test_key_in_the_path_counts_before_the_header(live: Live) -> None:
    good, bad = live.new_key(), "nk_bad"
    for path, header, status in (
        ("/v3", good, 200),
        ("/sample/v3/", good, 200),
        (f"/v3/{good}", bad, 200),
        (f"/v3/{bad}", good, 401),
        ("/v3", bad, 401),
    ):
        with Api(live.base_url, path, authorization=f"Bearer {header}") as api:
            assert api.send(request("eth_chainId")).status_code == status, path


# The end


def test_requests_in_flight_are_answered_before_the_service_ends(
    database: None,
) -> None:
    call = json.dumps(request("eth_getBlockByHash", HEAD, True)).encode()
    with live_service(workers=2) as live, ExitStack() as stack:
        key = live.new_key()
        clients = [stack.enter_context(connect(live)) for _ in range(16)]
        idle = [stack.enter_context(connect(live)) for _ in range(16)]
        for client in clients:
            client.sendall(head_of(live, len(call), key) + call[:20])
        for client in idle:
            client.sendall(head_of(live, len(call), key) + call)
            assert read_response(client)[0] == 200
        processes = [psutil.Process(pid) for pid in live.server.pids]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for client in idle:
            assert client.recv(10) == b""
        time.sleep(0.3)  # the clients are slow
        for client in clients:
            client.sendall(call[20:])
        answers = {read_response(client) for client in clients}
        assert {status for status, _ in answers} == {200}
        assert {json.loads(body)["result"]["hash"] for _, body in answers} == {HEAD}
        _, alive = psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)
        assert not alive
