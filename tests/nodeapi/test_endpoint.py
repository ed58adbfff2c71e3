from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import re
import socket
import time
from urllib.parse import urlsplit

import pytest

from evm.hexadecimal import to_hex
from jsonrpc.dispatch import Limits
from nodeapi.endpoint.access import is_node_path
from nodeapi.endpoint.responses import GZIP_MIN_BYTES, respond
from server.request_id import RequestId
from tests.support import edge, web
from tests.support.requests import WholeRequest
from tests.support.waiting import PATIENCE_SECONDS

JSON = {"content-type": "application/json"}
CHAIN_ID = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}
MAX_BODY_BYTES = 100_000
ACCOUNT = "0x" + "11" * 20


@pytest.fixture(scope="module")
def base_url():
    endpoint = edge.edge(Limits(seconds=PATIENCE_SECONDS), MAX_BODY_BYTES)
    with edge.serve(endpoint) as url:
        yield url


@pytest.fixture(scope="module")
def impatient_url():
    """Return the URL of an endpoint with short time limits."""
    endpoint = edge.edge(Limits(seconds=0.3), MAX_BODY_BYTES)
    with edge.serve(endpoint) as url:
        yield url


@pytest.fixture
def client(base_url):
    headers = {"accept-encoding": "identity"}
    with web.Client(base_url=base_url, headers=headers) as client:
        yield client


def ask(client, method, *params, path="/v3/good", **headers):
    """Make one call and return its response."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    return client.post(path, json=request, headers=headers)


def complaints(caplog):
    """Return the log lines above the level INFO."""
    return [record for record in caplog.records if record.levelno > logging.INFO]


BLOCK_HASH = to_hex(edge.BLOCK_HASH)


def test_call_is_answered_with_the_headers_of_every_answer(client):
    origin = {"origin": "https://a.test"}
    response = ask(client, "eth_getBlockByHash", BLOCK_HASH, False, **origin)
    assert response.status_code == 200
    assert response.content == b'{"jsonrpc":"2.0","id":1,"result":' + edge.BLOCK + b"}"
    headers = response.headers
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(response.content))
    assert headers["cache-control"] == "no-store"
    assert headers["access-control-allow-origin"] == "*"
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]+", headers["x-request-id"])
    assert "content-encoding" not in headers


@pytest.mark.parametrize("accepted", [None, "identity", "gzip, deflate, br"])
def test_plain_answer_has_the_headers_that_it_needs_and_no_more(client, accepted):
    del client.headers["accept-encoding"]
    if accepted is not None:
        client.headers["accept-encoding"] = accepted
    answer = ask(client, "eth_chainId")
    assert answer.content.startswith(b'{"jsonrpc":"2.0","id":1,"result":"0x')
    assert set(answer.headers) == {"date", "server", "content-type", "content-length"}
    # The key that needs I/O.
    found = ask(client, "eth_getStorageAt", ACCOUNT, "0x0", "0x5")
    assert set(found.headers) == set(answer.headers)
    refusal = ask(client, "eth_nothing")
    assert {"cache-control", "access-control-allow-origin"} <= set(refusal.headers)


def test_request_ids_differ(client):
    client.headers["origin"] = "https://a.test"
    ids = {ask(client, "eth_chainId").headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3


def test_request_id_of_the_sender_is_echoed_even_without_other_reasons(client):
    del client.headers["accept-encoding"]
    client.headers["x-request-id"] = "a1:B2.c3_d-4"
    for method in ("eth_chainId", "eth_nothing"):
        assert ask(client, method).headers["x-request-id"] == "a1:B2.c3_d-4"


@pytest.mark.parametrize("given", ["", "with space", "x" * 129, "ü", '"quoted"'])
def test_what_is_no_request_id_is_not_echoed(client, given):
    client.headers.update({b"x-request-id": given.encode()})
    echoed = ask(client, "eth_chainId").headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]+", echoed)


@pytest.mark.parametrize(
    ("path", "headers", "chain_id"),
    [
        ("/v3/good", {}, "0x101"),
        ("/v3/good/", {}, "0x101"),
        ("/v3/later", {}, "0x101"),
        ("/hive/v3/good", {}, "0x101"),
        ("/other/v3/good", {}, "0x102"),
        ("/v3/good", {"host": "other.test"}, "0x102"),
        ("/hive/v3/good", {"host": "other.test"}, "0x101"),
        ("/v3", {"authorization": "Bearer good"}, "0x101"),
        ("/v3/", {"authorization": "bearer good"}, "0x101"),
        ("/other/v3", {"authorization": "Bearer good"}, "0x102"),
        ("/v3/good", {"authorization": "Bearer unknown"}, "0x101"),
        ("/hive/v3/hive-only", {}, "0x101"),
    ],
)
def test_path_host_and_bearer_lead_to_a_network(client, path, headers, chain_id):
    response = client.post(path, json=CHAIN_ID, headers=headers)
    assert (response.status_code, response.json()["result"]) == (200, chain_id)


@pytest.mark.parametrize("path", ["/v3", "/v3/a", "/a/v3", "/a/v3/b", "/v3x/v3/b"])
def test_path_of_a_node_request(path):
    assert is_node_path(path)


@pytest.mark.parametrize("path", ["/", "/v3x", "/a", "/a/v3x", "/a/b/v3", "/v3x/a"])
def test_path_of_a_page(path):
    assert not is_node_path(path)


REFUSALS = [
    ("/v3", 401, -32002, "key_required"),
    ("/hive/v3/", 401, -32002, "key_required"),
    ("/v3/unknown", 401, -32002, "key_invalid"),
    ("/v3/revoked", 401, -32002, "key_revoked"),
    ("/v3/expired", 401, -32002, "key_expired"),
    ("/v3/disabled", 403, -32002, "key_disabled"),
    ("/other/v3/hive-only", 403, -32002, "network_not_enabled"),
    ("/unknown/v3/good", 404, -32001, "unknown_network"),
    ("/unknown/v3/unknown", 401, -32002, "key_invalid"),
    ("/v3/outage", 503, -32603, "unavailable"),
]


def test_link_in_an_error_leads_to_no_host_without_pages(client, settings):
    settings.ALLOWED_HOSTS = ["node.example"]
    for host, links_to in (
        ("node.example:81", "http://node.example:81"),
        ("evil.example", f"http://127.0.0.1:{settings.PORT}"),
    ):
        answer = ask(client, "eth_chainId", path="/v3/unknown", host=host).json()
        see = answer["error"]["data"]["see"]
        assert see == f"{links_to}/docs/errors#key_invalid"


@pytest.mark.parametrize(("path", "status", "code", "reason"), REFUSALS)
def test_refused_call_gets_the_reason(client, base_url, path, status, code, reason):
    response = client.post(path, json={**CHAIN_ID, "id": "mine"})
    answer = response.json()
    assert response.status_code == status
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == "mine"
    assert answer["error"]["code"] == code
    assert answer["error"]["data"]["reason"] == reason
    assert answer["error"]["data"]["see"] == f"{base_url}/docs/errors#{reason}"
    assert ("www-authenticate" in response.headers) is (status == 401)
    assert response.headers.get("retry-after") == ("1" if status == 503 else None)
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("path", "status", "code", "reason"), REFUSALS)
def test_refused_batch_gets_the_reason_for_each_call(
    client, path, status, code, reason
):
    notification = {"jsonrpc": "2.0", "method": "eth_chainId"}
    response = client.post(path, json=[CHAIN_ID, notification, {**CHAIN_ID, "id": 2}])
    assert response.status_code == status
    assert [answer["id"] for answer in response.json()] == [1, 2]
    assert {answer["error"]["data"]["reason"] for answer in response.json()} == {reason}


def test_refused_body_that_is_long_is_answered_without_its_id(base_url):
    endpoint = edge.edge(Limits(), 2**20)
    with edge.serve(endpoint) as url:
        request = {**CHAIN_ID, "params": ["x" * 2**18]}
        response = web.post(url + "/v3/unknown", json=request)
        assert response.status_code == 401
        assert response.json()["id"] is None


def test_bug_in_front_of_the_methods_is_logged_and_not_reported(client, caplog):
    response = client.post("/v3/crash", json=CHAIN_ID)
    assert response.json()["error"] == {
        "code": -32603,
        "message": "method handler crashed",
    }
    (record,) = complaints(caplog)
    assert response.headers["x-request-id"] in record.getMessage()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_only_post_is_allowed(client, method):
    response = client.request(method, "/v3/good", json=CHAIN_ID)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST, OPTIONS"
    assert response.json()["error"]["message"] == "POST only"
    assert response.json()["id"] is None


def test_head_is_refused_without_a_body(client):
    response = client.head("/v3/good")
    assert (response.status_code, response.content) == (405, b"")


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON ;charset=x",
        "application/json-rpc",
        "application/jsonrequest",
    ],
)
def test_media_types_of_json_are_taken(client, content_type):
    body = json.dumps(CHAIN_ID)
    response = client.post(
        "/v3/good", content=body, headers={"content-type": content_type}
    )
    assert response.json()["result"] == "0x101"


@pytest.mark.parametrize("encoding", ["gzip", "BR", "gzip, identity", ""])
def test_compressed_bodies_are_refused(client, encoding):
    headers = {"content-type": "application/json", "content-encoding": encoding}
    response = client.post("/v3/good", content=json.dumps(CHAIN_ID), headers=headers)
    assert response.status_code == 415
    assert response.headers["accept-encoding"] == "identity"
    assert response.json()["error"]["message"] == "the body must not be compressed"
    headers["content-encoding"] = "Identity"
    response = client.post("/v3/good", content=json.dumps(CHAIN_ID), headers=headers)
    assert response.json()["result"] == "0x101"


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
def test_other_media_types_are_refused(client, headers):
    body = json.dumps(CHAIN_ID)
    response = client.post("/v3/unknown", content=body, headers=headers)
    assert response.status_code == 415
    assert response.headers["accept-post"] == "application/json"
    message = "content-type must be application/json"
    assert response.json()["error"]["message"] == message


@pytest.mark.parametrize("path", ["/v3/good/more", "/hive/v3/good/more"])
def test_other_paths_are_not_found(client, path):
    response = client.post(path, json=CHAIN_ID)
    assert response.status_code == 404
    assert response.json()["error"]["data"]["reason"] == "unknown_path"


def test_body_of_the_limit_is_taken(client):
    body = json.dumps(CHAIN_ID).encode().ljust(MAX_BODY_BYTES)
    response = client.post("/v3/good", content=body, headers=JSON)
    assert response.json()["result"] == "0x101"


def chunks(size: int):
    for _ in range(size // 10_000 + 1):
        yield b" " * 10_000


@pytest.mark.parametrize("content", [b" " * (MAX_BODY_BYTES + 1), chunks])
@pytest.mark.parametrize("size", [MAX_BODY_BYTES, 20 * MAX_BODY_BYTES])
def test_longer_body_is_refused_declared_or_not(client, base_url, content, size):
    body = content(size) if callable(content) else content * (size // MAX_BODY_BYTES)
    response = client.post("/v3/good", content=body, headers=JSON)
    assert response.status_code == 413
    assert response.headers["connection"] == "close"
    assert response.json()["error"] == {
        "code": -32600,
        "message": f"request body too large: limit {MAX_BODY_BYTES} bytes",
        "data": {
            "reason": "body_too_large",
            "see": f"{base_url}/docs/errors#body_too_large",
            "limit": MAX_BODY_BYTES,
        },
    }


def test_declared_length_is_refused_before_the_key_is_looked_at(client):
    body = b" " * (MAX_BODY_BYTES + 1)
    response = client.post("/v3/unknown", content=body, headers=JSON)
    assert response.status_code == 413


def connect(base_url) -> socket.socket:
    address = urlsplit(base_url)
    return socket.create_connection((address.hostname, address.port), PATIENCE_SECONDS)


HEAD = (
    b"POST /v3/good HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    b"content-length: 100\r\n\r\n"
)


def test_body_that_stops_coming_is_given_up(impatient_url):
    with connect(impatient_url) as client:
        client.sendall(HEAD + b"{")
        assert b" 408 " in client.recv(10_000)
        assert client.recv(10_000) == b""


def test_client_that_leaves_is_forgotten_quietly(base_url, client, caplog):
    for sent in (HEAD, HEAD + b"{"):
        with connect(base_url) as leaver:
            leaver.sendall(sent)
            time.sleep(0.02)
    assert ask(client, "eth_chainId").status_code == 200
    assert not complaints(caplog)


def test_preflight_is_answered_without_a_key(client):
    response = client.options("/v3/unknown", headers={"origin": "https://a.test"})
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["access-control-allow-methods"] == "POST, OPTIONS"
    allowed = response.headers["access-control-allow-headers"]
    assert allowed == "content-type, authorization"
    assert response.headers["access-control-max-age"] == "7200"


@pytest.mark.parametrize("path", ["/v3/good", "/v3/unknown"])
def test_pages_may_read_what_they_need(client, path):
    response = ask(client, "eth_chainId", path=path, origin="https://a.test")
    assert response.headers["access-control-allow-origin"] == "*"
    exposed = response.headers["access-control-expose-headers"]
    assert exposed == "Retry-After, X-Request-Id"
    assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("deflate, *", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, br", False),
        ("br", False),
        ("identity", False),
    ],
)
def test_long_answer_is_compressed_where_that_is_accepted(
    base_url, accepted, is_compressed
):
    request = {**CHAIN_ID, "method": "eth_getBlockByHash", "params": [BLOCK_HASH, True]}
    headers = {"accept-encoding": accepted}
    with web.stream(
        "POST", base_url + "/v3/good", json=request, headers=headers
    ) as response:
        body = b"".join(response.iter_raw())
    assert ("content-encoding" in response.headers) is is_compressed
    assert response.headers["content-length"] == str(len(body))
    assert edge.BLOCK in (gzip.decompress(body) if is_compressed else body)


@pytest.mark.parametrize("origin", [{}, {"origin": "https://a.test"}])
def test_short_answer_is_not_compressed_and_varies_with_nothing(base_url, origin):
    headers = {"accept-encoding": "gzip", **origin}
    response = web.post(base_url + "/v3/good", json=CHAIN_ID, headers=headers)
    assert "content-encoding" not in response.headers
    assert "vary" not in response.headers


@pytest.mark.parametrize("too_short", [0, 1])
def test_what_fits_into_a_packet_is_short(too_short):
    body = b" " * (GZIP_MIN_BYTES - too_short)
    headers = {b"accept-encoding": b"gzip"}
    for given in (headers, {}):
        request = WholeRequest("/v3/good", given, b"")
        response = respond(body, request, RequestId(), None).result()
        is_compressed = (b"content-encoding", b"gzip") in response.headers
        assert is_compressed is (bool(given) and not too_short)


def test_very_long_answer_is_compressed_too(base_url):
    call = {**CHAIN_ID, "method": "eth_getBlockByHash", "params": [BLOCK_HASH, True]}
    response = web.post(base_url + "/v3/good", json=[call] * 100)
    assert response.headers["content-encoding"] == "gzip"
    assert len(response.json()) == 100


def test_body_that_is_no_json_is_a_bad_request(client):
    response = client.post("/v3/good", content=b"{", headers=JSON)
    assert response.status_code == 400
    assert response.json()["error"] == {"code": -32700, "message": "parse error"}


def test_notification_gets_an_empty_body(client):
    request = {"jsonrpc": "2.0", "method": "eth_chainId"}
    response = client.post("/v3/good", json=request)
    assert (response.status_code, response.content) == (200, b"")


def test_database_that_is_down_makes_the_service_unavailable(client):
    response = ask(client, "eth_getBlockByHash", to_hex(edge.BROKEN_HASH), True)
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["error"]["message"] == "service temporarily unavailable"


def test_slow_call_is_timed_out(impatient_url):
    with web.Client(base_url=impatient_url) as client:
        response = ask(client, "eth_getBlockByHash", to_hex(edge.SLOW_HASH), True)
    assert response.status_code == 200
    assert response.json()["error"] == {"code": -32002, "message": "request timed out"}


@pytest.mark.parametrize("path", ["/v3", "/v3/unknown", "/v3/good/more"])
def test_refused_request_is_freed_without_the_garbage_collector(path):
    class Note:
        def refused(self, request_id, error):
            self.error = error

    def left():
        # By type: isinstance() follows weak proxies, whose objects may be gone.
        return sum(type(each) is Note for each in gc.get_objects())

    async def ask(endpoint):
        headers = {b"content-type": b"application/json"}
        request = WholeRequest(path, headers, b"{}")
        request.note = Note()
        assert (await endpoint(request)).status >= 400

    gc.disable()
    try:
        asyncio.run(ask(edge.edge(Limits(), MAX_BODY_BYTES)))
        assert left() == 0
    finally:
        gc.enable()
