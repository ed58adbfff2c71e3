"""Every kind of refusal over real HTTP: a call by itself, and the same in a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from keys import format as key_format
from keys.models import ApiKey, KeyVersion
from keys.services import (
    announce_key,
    disable_key,
    grant_entitlement,
    revoke_version,
    set_allowlist,
)
from keys.services.limits import set_limits
from networks.models import Network
from networks.services import configure_network
from tests.support import chains, sample, web
from tests.support.live import Live, live_service, request

ORIGIN = "https://dapp.example"
BEARER = 'Bearer realm="portcullis"'
BAD_TOKEN = {"www-authenticate": f'{BEARER}, error="invalid_token"'}
CONTACT = "mail@example.org"
ADDRESS = "203.0.113.7"
"""Of somebody who has shown too many bad keys."""

MAX_BODY_BYTES = 100_000
MAX_RESPONSE_BYTES = 20_000
TOMORROW = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT00:00:00Z}"
EXPIRED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

CHAIN_ID = request("eth_chainId")
RECEIPTS = request("eth_getBlockReceipts", "0x1")
ENDLESS = "{step() {}, fault() {}, result() { for (;;); }}"


def trace(**options: Any) -> dict[str, Any]:
    return request("debug_traceBlockByNumber", "0x1", options)


@dataclass(frozen=True)
class Row:
    """A situation and what it is answered with.

    key: which of the keys shows up. status: of a call by itself. of_request: whether a
    batch is refused as a whole, with that status, and not each call within a 200.
    headers: patterns of those that refusals differ in. data: `data` but for `see`;
    None where the words are geth's, which come without.
    """

    key: str
    call: Mapping[str, Any]
    status: int
    code: int
    message: str
    data: dict[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    of_request: bool = True
    sent: Mapping[str, str] = field(default_factory=dict)


ROWS = {
    "no key": Row(
        *("none", CHAIN_ID, 401, -32002),
        "API key required in the URL: /v3/<API_KEY>",
        {"reason": "key_required"},
        {"www-authenticate": BEARER},
    ),
    "malformed key": Row(
        *("malformed", CHAIN_ID, 401, -32002, "invalid API key"),
        {"reason": "key_invalid"},
        BAD_TOKEN,
    ),
    "unknown key": Row(
        *("unknown", CHAIN_ID, 401, -32002, "invalid API key"),
        {"reason": "key_invalid"},
        BAD_TOKEN,
    ),
    "bad keys again and again": Row(
        *("unknown", CHAIN_ID, 429, -32005),
        "invalid API key, and too many requests with such keys from this address",
        {"reason": "too_many_invalid_keys"},
        {"retry-after": "[1-6]?[0-9]"},
        sent={"x-forwarded-for": ADDRESS},
    ),
    "revoked key": Row(
        *("revoked", CHAIN_ID, 401, -32002, "this API key was revoked"),
        {"reason": "key_revoked"},
        BAD_TOKEN,
    ),
    "expired key": Row(
        *("expired", CHAIN_ID, 401, -32002),
        "this API key expired on 2026-01-02T03:04:05Z",
        {"reason": "key_expired", "expired_at": "2026-01-02T03:04:05Z"},
        BAD_TOKEN,
    ),
    "disabled key": Row(
        *("disabled", CHAIN_ID, 403, -32002),
        "this API key is disabled; contact support",
        {"reason": "key_disabled"},
    ),
    "other network": Row(
        *("elsewhere", CHAIN_ID, 403, -32002, "this API key has no access to alpha"),
        {"reason": "network_not_enabled", "network": "alpha"},
    ),
    "other origin": Row(
        *("elsewhence", CHAIN_ID, 403, -32002, "rejected due to API key settings"),
        {"reason": "origin_not_allowed"},
        {"vary": "Origin"},
    ),
    "method that was not granted": Row(
        *("plain", trace(), 403, -32002),
        "debug_traceBlockByNumber is not enabled for this API key on alpha"
        f"; ask {CONTACT} about custom plans",
        {
            "reason": "method_not_entitled",
            "method": "debug_traceBlockByNumber",
            "network": "alpha",
        },
        of_request=False,
    ),
    "tracer that the network lacks": Row(
        *("tracing", trace(tracer="callTracer"), 200, -32602),
        'invalid params: tracer "callTracer" is not available on alpha'
        '; available: "javascript", "prestateTracer"',
        {
            "reason": "tracer_not_available",
            "tracer": "callTracer",
            "network": "alpha",
            "available": ["javascript", "prestateTracer"],
        },
        of_request=False,
    ),
    "tracer that was not granted": Row(
        *("tracing", trace(tracer="prestateTracer"), 403, -32002),
        'tracer "prestateTracer" is not enabled for this API key on alpha'
        f"; ask {CONTACT} about custom plans",
        {
            "reason": "tracer_not_entitled",
            "tracer": "prestateTracer",
            "network": "alpha",
        },
        of_request=False,
    ),
    "over the day's quota": Row(
        *("spent", CHAIN_ID, 402, -32005),
        "daily credit quota exceeded; resets at 00:00 UTC",
        {"reason": "daily_quota", "limit": 10, "resets_at": TOMORROW},
    ),
    "wrong parameters": Row(
        *("plain", request("eth_getBlockByHash", "0x1", False), 200, -32602),
        "invalid argument 0: json: cannot unmarshal hex string of odd length"
        " into Go value of type common.Hash",
        of_request=False,
    ),
    "unknown method": Row(
        *("plain", request("eth_foo"), 200, -32601),
        "the method eth_foo does not exist/is not available",
        of_request=False,
    ),
    "deadline that has passed": Row(
        *("tracing", trace(tracer=ENDLESS, timeout="60s"), 200, -32002),
        "request timed out",
        of_request=False,
    ),
    "no request": Row(
        *("plain", {"id": 1, "method": 5}, 400, -32600, "invalid request"),
        of_request=False,
    ),
}


def make_keys(live: Live) -> dict[str, str]:
    """Issue a key for each way of being refused."""
    alpha, beta = Network.objects.order_by("slug")
    secrets, rows = {}, {}
    for name in (
        *("plain", "revoked", "expired", "disabled", "elsewhere"),
        *("elsewhence", "tracing", "spent", "poor"),
    ):
        networks = [beta] if name == "elsewhere" else []
        secrets[name] = live.new_key(networks=networks)
        rows[name] = ApiKey.objects.latest("id")
    version = KeyVersion.objects.get(api_key=rows["revoked"])
    revoke_version(version=version, reason="leaked")
    ApiKey.objects.filter(pk=rows["expired"].pk).update(expires_at=EXPIRED_AT)
    announce_key(rows["expired"])
    disable_key(api_key=rows["disabled"])
    set_allowlist(api_key=rows["elsewhence"], kind="origin", values=["other.example"])
    grant_entitlement(api_key=rows["tracing"], network=alpha, tracers=["javascript"])
    set_limits(api_key=rows["spent"], credits_per_day=10)
    set_limits(api_key=rows["poor"], credits_per_second=1, burst=100)
    unknown = key_format.make_key()
    malformed = unknown[:-1] + ("A" if unknown[-1] != "A" else "B")
    return {**secrets, "none": "", "malformed": malformed, "unknown": unknown}


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    for slug in ("alpha", "beta"):
        chains.import_blocks(slug, sample.genesis(), sample.raw_blocks()[:2])
    alpha = Network.objects.get(slug="alpha")
    configure_network(network=alpha, tracers=["javascript", "prestateTracer"])
    env = {
        "NODEAPI_SUPPORT_CONTACT": CONTACT,
        "NODEAPI_FAILED_KEYS_PER_MINUTE": "1",
        "NODEAPI_MAX_BODY_BYTES": str(MAX_BODY_BYTES),
        "NODEAPI_MAX_BATCH_CALLS": "50",
        "NODEAPI_MAX_BATCH_RESPONSE_BYTES": str(MAX_RESPONSE_BYTES),
        "NODEAPI_SLOW_REQUEST_TIMEOUT": "1",
    }
    with live_service(env=env) as live:
        yield live


@pytest.fixture(scope="module")
def keys(live: Live) -> dict[str, str]:
    keys = make_keys(live)
    post(live, keys["spent"], [CHAIN_ID] * 10)
    post(live, keys["unknown"], CHAIN_ID, **{"x-forwarded-for": ADDRESS})
    return keys


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
    """Ask as a page does, which needs more headers than others."""
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
    """Compare a status and the headers that refusals differ in, and share."""
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


def error_of(row: Row) -> dict[str, Any]:
    error: dict[str, Any] = {"code": row.code, "message": row.message}
    if row.data is not None:
        see = f"/docs/errors#{row.data['reason']}"
        error["data"] = {**row.data, "see": see}
    return error


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_call_is_refused(live: Live, keys: dict[str, str], row: Row) -> None:
    response = post(live, keys[row.key], row.call, **row.sent)
    check(response, row.status, row.headers)
    assert response.json() == {"jsonrpc": "2.0", "id": 1, "error": error_of(row)}


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
    error = error_of(row)
    assert response.json() == [
        {"jsonrpc": "2.0", "id": call_id, "error": error} for call_id in (7, "x")
    ]


@pytest.mark.parametrize("calls", [RECEIPTS, [RECEIPTS] * 2])
def test_requests_over_the_rate_are_told_when_to_come_again(
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
            "see": "/docs/errors#rate_limited",
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
                "see": "/docs/errors#batch_too_costly",
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
    told = {**data, "see": f"/docs/errors#{data['reason']}"}
    error = {"code": -32600, "message": message, "data": told}
    assert answer.json() == {"jsonrpc": "2.0", "id": None, "error": error}
