"""The request log. Neither a log line nor a page contains a key."""

from __future__ import annotations

import errno
import io
import json
import sys

import pytest
from django.test import Client
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from config import request_log
from jsonrpc.later import Later
from keys.models import User
from server.request import Response
from tests.support import web
from tests.support.live import live_service, request
from tests.support.requests import WholeRequest
from tests.support.rows import make_network
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def network():
    return make_network("logged")


def lines(live, count):
    """Return the first lines of the request log, which may be written with a delay."""

    def written():
        whole, _, _ = live.log().rpartition("\n")
        found = [json.loads(line) for line in whole.splitlines()]
        return [line for line in found if line["logger"] == "requests"]

    return wait_until(lambda: found if len(found := written()) >= count else None)


def test_every_request_has_its_line(network):
    env = {"LOG_FORMAT": "json", "REQUEST_LOG": "all"}
    with live_service(env=env) as live, live.api() as api:
        api.send(
            request("eth_chainId"),
            **{"x-request-id": "r-1", "traceparent": TRACEPARENT},
        )
        answer = api.send([request("eth_chainId"), request("eth_nothing")])
        web.post(f"{live.base_url}/v3/nk_wrong", json=request("eth_chainId"))
        web.get(f"{live.base_url}/explore/logged/block/0x{'00' * 32}")
        single, batch, refused, page = lines(live, 4)
    (secret,) = live.secrets
    assert single["request_id"] == "r-1"
    assert single["traceparent"] == TRACEPARENT
    assert single["key"] == f"{secret[:7]}…{secret[-4:]}"
    assert single["network"] == "logged"
    assert (single["methods"], single["calls"]) == (["eth_chainId"], 1)
    assert (single["status"], "code" in single) == (200, False)
    assert 0 < single["ms"] < 1000 * PATIENCE_SECONDS
    assert batch["methods"] == ["eth_chainId", "(unknown)"]
    assert (batch["code"], batch["bytes"]) == (-32601, len(answer.content))
    assert (refused["status"], refused["reason"]) == (401, "key_invalid")
    assert "key" not in refused
    assert page["page"].startswith("GET /explore/<")


def test_every_frame_of_a_socket_has_its_line(network):
    env = {"LOG_FORMAT": "json", "REQUEST_LOG": "all"}
    calls = [request("eth_chainId"), request("eth_nothing")]
    with live_service(env=env) as live:
        secret = live.new_key()
        base = live.base_url.replace("http://", "ws://")
        with connect(f"{base}/ws/v3/{secret}", proxy=None) as socket:
            socket.send(json.dumps(request("eth_chainId")))
            answer = socket.recv()
            socket.send(json.dumps(calls))
            socket.recv()
        with pytest.raises(InvalidStatus):
            connect(f"{base}/ws/v3/nk_wrong", proxy=None)
        single, batch, refused = lines(live, 3)
    assert single["key"] == f"{secret[:7]}…{secret[-4:]}"
    assert (single["network"], single["transport"]) == ("logged", "websocket")
    assert (single["methods"], single["calls"]) == (["eth_chainId"], 1)
    assert single["bytes"] == len(answer)
    assert not {"status", "page", "code"} & set(single)
    assert (batch["methods"], batch["code"]) == (["eth_chainId", "(unknown)"], -32601)
    assert single["request_id"] != batch["request_id"]
    assert (refused["transport"], refused["reason"]) == ("websocket", "key_invalid")


def test_log_of_problems_has_the_frames_with_errors(network):
    env = {"LOG_FORMAT": "json", "REQUEST_LOG": "problems"}
    with live_service(env=env) as live:
        base = live.base_url.replace("http://", "ws://")
        with connect(f"{base}/ws/v3/{live.new_key()}", proxy=None) as socket:
            for method in ("eth_chainId", "eth_nothing"):
                socket.send(json.dumps(request(method)))
                socket.recv()
        found = lines(live, 1)
    assert [line["methods"] for line in found] == [["(unknown)"]]


def test_requests_whose_heads_are_known_have_their_lines_too(network):
    env = {"LOG_FORMAT": "json", "REQUEST_LOG": "all"}
    block = request("eth_getBlockByHash", f"0x{'00' * 32}", False)  # to be looked up
    storage = request("eth_getStorageAt", f"0x{'00' * 20}", "0x0", f"0x{'00' * 32}")
    messages = [request("eth_chainId"), block, storage, [block, block]] * 4
    with live_service(env=env) as live, live.api() as api:
        answers = [api.send(message) for message in messages]
        found = lines(live, len(messages))
    told = [(line["methods"][0], line["calls"], line["status"]) for line in found]
    assert (
        told
        == [
            ("eth_chainId", 1, 200),
            ("eth_getBlockByHash", 1, 200),
            ("eth_getStorageAt", 1, 200),
            ("eth_getBlockByHash", 2, 200),
        ]
        * 4
    )
    assert [line["bytes"] for line in found] == [len(one.content) for one in answers]
    assert [line.get("code") for line in found] == [None, None, -32000, None] * 4


def test_only_problems_are_reported_where_that_is_wanted(network):
    env = {
        "LOG_FORMAT": "json",
        "REQUEST_LOG": "problems",
        "REQUEST_LOG_SLOW_SECONDS": "600",
    }
    with live_service(env=env) as live, live.api() as api:
        api.send(request("eth_chainId"))
        api.send(request("eth_nothing"))
        (only,) = lines(live, 1)
    assert only["code"] == -32601


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_line_and_no_page_holds_a_key(network, log_format):
    User.objects.create_superuser("staff@example.org")
    env = {"LOG_FORMAT": log_format, "REQUEST_LOG": "all", "LOG_LEVEL": "DEBUG"}
    with live_service(env=env) as live:
        key = live.new_key()
        pages = list(_misplace(live.base_url, key))
        wait_until(lambda: f"{key[:7]}…{key[-4:]}" in live.log())
    assert len(pages) > 20
    for page in pages:  # the service's log is checked when it stops
        assert key[7:-4] not in page


def _misplace(base_url, key):
    """Yield the responses to requests with a key in wrong places."""
    call = request("eth_chainId")
    with web.Client(base_url=base_url) as client:
        for path in (
            *(f"/v3/{key}", f"/logged/v3/{key}", f"/v3/{key}/more", f"/v3/x/{key}"),
            *(f"/{key}", f"/v3{key}", f"/v4/{key}", f"/admin/{key}/", f"/docs/{key}"),
            *(f"/v3/{key}%FF", f"/v3/%FF{key}", f"/{key}%FF", f"/{key}%0A{key}"),
            *(f"/explore/{key}/block/0x00", f"/wallet/{key}", f"/static/{key}"),
        ):
            yield client.post(path, json=call).text
            yield client.get(path, params={"key": key}).text
        for headers in (
            {"authorization": f"Bearer {key}"},
            {"authorization": key, "x-request-id": key, "user-agent": key},
            {"origin": f"http://{key}", "referer": f"{base_url}/v3/{key}"},
            {"host": key, "cookie": f"sessionid={key}"},
        ):
            yield client.post("/v3", json=call, headers=headers).text
        for body in (
            request("eth_chainId", key),
            request("eth_getStorageAt", "0x00", key),
            [request(f"eth_{key}"), request("debug_traceBlockByHash", key)],
        ):
            # Only the caller's own response may contain text from the request.
            client.post(f"/v3/{key}", json=body)
        client.post(f"/v3/{key}", content=b"\xff" + key.encode())
        yield from _search(client, key)


def _search(client, key):
    """Yield the admin's pages after a search for a whole key."""
    # `force_login`, because the service does not know the tests' password hasher.
    staff = Client()
    staff.force_login(User.objects.get(email="staff@example.org"))
    client.cookies.set("sessionid", staff.cookies["sessionid"].value)
    found = client.get("/admin/keys/apikey/", params={"q": key}, follow_redirects=True)
    assert found.status_code == 200
    assert key[:7] in found.text
    yield client.get(f"/admin/keys/apikey/{key}/change/").text


def test_request_is_answered_though_its_line_cannot_be_written(monkeypatch):
    class FullDisk(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", FullDisk())
    monkeypatch.setattr(request_log, "FLUSH_LINES", 1)
    log = request_log.RequestLog("all", slow_seconds=1, as_json=True)
    response = Later(Response(200, (), b"x"))
    handler = log.around_node(lambda request: response)
    assert handler(WholeRequest("/v3", {}, b"")) is response
