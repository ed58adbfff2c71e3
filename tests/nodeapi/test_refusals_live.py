"""Every kind of rejection over real HTTP, for a single call and in a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.support import web
from tests.support.live import Live, request
from tests.support.refusals import (
    CHAIN_ID,
    MAX_BODY_BYTES,
    ORIGIN,
    RECEIPTS,
    ROWS,
    Row,
    error_of,
    refusing_service,
)


@pytest.fixture(scope="module")
def refusing(module_db: None) -> Iterator[tuple[Live, dict[str, str]]]:
    with refusing_service() as refusing:
        yield refusing


@pytest.fixture(scope="module")
def live(refusing: tuple[Live, dict[str, str]]) -> Live:
    return refusing[0]


@pytest.fixture(scope="module")
def keys(refusing: tuple[Live, dict[str, str]]) -> dict[str, str]:
    return refusing[1]


def post(live: Live, key: str, message: Any, **headers: str) -> httpx.Response:
    """Send JSON."""
    return send(live, key, content=json.dumps(message).encode(), headers=headers)


def send(
    live: Live,
    key: str,
    *,
    method: str = "POST",
    content: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Send a request with a page's CORS headers."""
    own = {
        "origin": ORIGIN,
        "content-type": "application/json",
        "accept-encoding": "identity",
    }
    return web.request(
        method,
        f"{live.base_url}/alpha/v3/{key}",
        content=content,
        headers={**own, **(headers or {})},
    )


def check(response: httpx.Response, status: int, headers: Mapping[str, str]) -> None:
    """Check a status, and the headers of rejections."""
    assert response.status_code == status
    varying = ("www-authenticate", "retry-after", "vary", "allow", "accept-post")
    told = {name: value for name, value in response.headers.items() if name in varying}
    assert told.keys() == headers.keys()
    for name, pattern in headers.items():
        assert re.fullmatch(pattern, told[name])
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-request-id"]
    assert response.headers["access-control-allow-origin"] == "*"
    exposed = response.headers["access-control-expose-headers"]
    assert exposed == "Retry-After, X-Request-Id"


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_call_is_refused(live: Live, keys: dict[str, str], row: Row) -> None:
    response = post(live, keys[row.key], row.call, **row.sent)
    check(response, row.status, row.headers)
    assert response.json() == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": error_of(row, live.base_url, keys[row.key]),
    }


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_batch_is_refused_call_by_call(
    live: Live, keys: dict[str, str], row: Row
) -> None:
    calls = [{**row.call, "id": call_id} for call_id in (7, "x")]
    response = post(live, keys[row.key], calls, **row.sent)
    if row.of_request:
        check(response, row.status, row.headers)
    else:
        check(response, 200, {})
    error = error_of(row, live.base_url, keys[row.key])
    assert response.json() == [
        {"jsonrpc": "2.0", "id": call_id, "error": error} for call_id in (7, "x")
    ]


@pytest.mark.parametrize("calls", [RECEIPTS, [RECEIPTS] * 2])
def test_requests_over_the_rate_get_retry_after(
    live: Live, keys: dict[str, str], calls: Any
) -> None:
    while (answer := post(live, keys["poor"], calls)).status_code == 200:
        pass
    cost = 10 * (len(calls) if isinstance(calls, list) else 1)
    seconds = int(answer.headers["retry-after"])
    assert 1 <= seconds <= cost
    check(answer, 429, {"retry-after": str(seconds)})
    told = answer.json() if isinstance(calls, list) else [answer.json()]
    assert len(told) == cost // 10
    for each in told:
        error = each["error"]
        assert error["code"] == -32005
        assert error["message"] == "request rate exceeded: 1 credits per second"
        assert seconds - 1 <= error["data"].pop("backoff_seconds") <= seconds
        assert error["data"] == {
            "reason": "rate_limited",
            "see": f"{live.base_url}/docs/errors#rate_limited",
            "allowed_credits_per_second": 1,
        }


def test_batch_that_costs_more_than_the_burst_is_to_be_split(
    live: Live, keys: dict[str, str]
) -> None:
    answer = post(live, keys["poor"], [RECEIPTS] * 11)
    check(answer, 200, {})
    assert [each["error"] for each in answer.json()] == [
        {
            "code": -32600,
            "message": "batch needs 110 credits, more than this key's burst of 100"
            ": split it",
            "data": {
                "reason": "batch_too_costly",
                "see": f"{live.base_url}/docs/errors#batch_too_costly",
                "credits": 110,
                "burst": 100,
            },
        }
    ] * 11


BODIES = {
    "nothing": (b"", 400, -32700, "parse error"),
    "no JSON": (b"{", 400, -32700, "parse error"),
    "no object": (b"5", 400, -32600, "invalid request"),
    "no call": (b"[]", 200, -32600, "empty batch"),
}


@pytest.mark.parametrize(
    ("body", "status", "code", "message"), BODIES.values(), ids=BODIES
)
def test_body_that_is_no_request_is_refused_under_no_id(
    live: Live, keys: dict[str, str], body: bytes, status: int, code: int, message: str
) -> None:
    answer = send(live, keys["plain"], content=body)
    check(answer, status, {})
    error = {"code": code, "message": message}
    assert answer.json() == {"jsonrpc": "2.0", "id": None, "error": error}


def test_batch_of_too_many_calls_has_one_answer(
    live: Live, keys: dict[str, str]
) -> None:
    answer = post(live, keys["plain"], [{**CHAIN_ID, "id": n} for n in range(3, 54)])
    check(answer, 200, {})
    error = {"code": -32600, "message": "batch too large"}
    assert answer.json() == [{"jsonrpc": "2.0", "id": 3, "error": error}]


def test_answers_beyond_the_size_of_a_batch_are_left_out(
    live: Live, keys: dict[str, str]
) -> None:
    call = request("eth_getBlockByNumber", "0x0", True)
    answer = post(live, keys["plain"], [call] * 50)
    check(answer, 200, {})
    errors = [each["error"] for each in answer.json() if "error" in each]
    assert 0 < len(errors) < 50
    assert all(
        error == {"code": -32003, "message": "response too large"} for error in errors
    )


EDGE = {
    "body that is too long": (
        {"content": b" " * (MAX_BODY_BYTES + 1)},
        413,
        f"request body too large: limit {MAX_BODY_BYTES} bytes",
        {"reason": "body_too_large", "limit": MAX_BODY_BYTES},
        {},
    ),
    "no POST": (
        {"method": "GET"},
        405,
        "POST only",
        {"reason": "http_method_not_allowed"},
        {"allow": "POST, OPTIONS"},
    ),
    "other media type": (
        {"content": b"{}", "headers": {"content-type": "text/plain"}},
        415,
        "content-type must be application/json",
        {"reason": "unsupported_media_type"},
        {"accept-post": "application/json"},
    ),
}


@pytest.mark.parametrize(
    ("sent", "status", "message", "data", "headers"), EDGE.values(), ids=EDGE
)
@pytest.mark.parametrize("key", ["plain", "unknown"])
def test_requests_that_are_not_looked_into_are_refused_before_their_key(
    live: Live,
    keys: dict[str, str],
    key: str,
    sent: dict[str, Any],
    status: int,
    message: str,
    data: dict[str, Any],
    headers: dict[str, str],
) -> None:
    answer = send(live, keys[key], **sent)
    check(answer, status, headers)
    assert (answer.headers.get("connection") == "close") is (status == 413)
    told = {**data, "see": f"{live.base_url}/docs/errors#{data['reason']}"}
    error = {"code": -32600, "message": message, "data": told}
    assert answer.json() == {"jsonrpc": "2.0", "id": None, "error": error}
