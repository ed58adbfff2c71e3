"""The reasons for which requests are rejected, and the responses, as a table for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

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
from keys.site import tracing_path
from networks.models import Network
from networks.services import configure_network
from tests.support import chains, sample, web
from tests.support.live import Live, api_key_of, live_service, request

ORIGIN = "https://dapp.example"
BEARER = 'Bearer realm="portcullis"'
BAD_TOKEN = {"www-authenticate": f'{BEARER}, error="invalid_token"'}
CONTACT = "mail@example.org"
ADDRESS = "203.0.113.7"
"""Address of a client that has used too many unknown keys."""

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
    """A reason and its response.

    key: name of the key that the request uses. status: of a call by itself. of_request: whether a
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
    "block that is not there": Row(
        *("plain", request("eth_getStorageAt", "0x" + "12" * 20, "0x0", "0xffff")),
        *(200, -32000, "header not found"),
        of_request=False,
    ),
    "no request": Row(
        *("plain", {"id": 1, "method": 5}, 400, -32600, "invalid request"),
        of_request=False,
    ),
}


def make_keys(live: Live) -> dict[str, str]:
    """Issue the keys that the rows use."""
    alpha, beta = Network.objects.order_by("slug")
    secrets, rows = {}, {}
    for name in (
        *("plain", "revoked", "expired", "disabled", "elsewhere"),
        *("elsewhence", "tracing", "spent", "poor"),
    ):
        networks = [beta] if name == "elsewhere" else []
        secrets[name] = live.new_key(networks=networks)
        rows[name] = api_key_of(secrets[name])
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


def error_of(row: Row, site: str, secret: str) -> dict[str, Any]:
    """Return the error object of a row. site: base URL. secret: of the row's key."""
    error: dict[str, Any] = {"code": row.code, "message": row.message}
    if row.data is not None:
        reason = row.data["reason"]
        error["data"] = {**row.data, "see": f"{site}/docs/errors#{reason}"}
        if reason.endswith("_entitled"):
            path = tracing_path(api_key_of(secret).pk, "alpha")
            error["data"]["request_access"] = site + path
    return error


@contextmanager
def refusing_service(
    env: Mapping[str, str] | None = None,
) -> Iterator[tuple[Live, dict[str, str]]]:
    """Serve two blocks on the networks alpha and beta. Yield the service and the keys.

    env: additions to the environment.
    """
    for slug in ("alpha", "beta"):
        chains.import_blocks(slug, sample.genesis(), sample.raw_blocks()[:2])
    alpha = Network.objects.get(slug="alpha")
    configure_network(network=alpha, tracers=["javascript", "prestateTracer"])
    limits = {
        "NODEAPI_SUPPORT_CONTACT": CONTACT,
        "NODEAPI_FAILED_KEYS_PER_MINUTE": "1",
        "NODEAPI_MAX_BODY_BYTES": str(MAX_BODY_BYTES),
        "NODEAPI_MAX_BATCH_CALLS": "50",
        "NODEAPI_MAX_BATCH_RESPONSE_BYTES": str(MAX_RESPONSE_BYTES),
        "NODEAPI_SLOW_REQUEST_TIMEOUT": "1",
    }
    with live_service(env={**limits, **(env or {})}) as live:
        keys = make_keys(live)
        base = f"{live.base_url}/alpha/v3"
        web.post(f"{base}/{keys['spent']}", json=[CHAIN_ID] * 10)
        shown = {"x-forwarded-for": ADDRESS}
        web.post(f"{base}/{keys['unknown']}", json=CHAIN_ID, headers=shown)
        yield live, keys
