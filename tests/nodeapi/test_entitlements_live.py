"""Tracing entitlements over real HTTP, for single calls and batches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from evm.blocks import decode_block
from keys.models import ApiKey
from keys.services import grant_entitlement, withdraw_entitlement
from networks.models import Network
from networks.services import configure_network
from tests.support import chains, sample
from tests.support.live import Api, Live, api_key_of, live_service, request
from tests.support.waiting import wait_until

BLOCK_HASH = "0x" + decode_block(sample.raw_blocks()[3]).header.hash.hex()
METHODS = [
    ("debug_traceBlockByHash", BLOCK_HASH),
    ("debug_traceBlockByNumber", "0x4"),
]


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    for slug in ("alpha", "beta"):
        chains.import_blocks(slug, sample.genesis(), sample.raw_blocks()[:5])
    configure_network(network=network("beta"), tracers=["prestateTracer", "muxTracer"])
    with live_service(env={"NODEAPI_SUPPORT_CONTACT": "mail@example.org"}) as live:
        yield live


def network(slug: str) -> Network:
    return Network.objects.get(slug=slug)


@pytest.fixture
def api_key(live: Live) -> tuple[str, ApiKey]:
    """Issue a key that may not trace."""
    secret = live.new_key()
    return secret, api_key_of(secret)


def call(tracer: str, **config: Any) -> dict[str, Any]:
    options = {"tracer": tracer, "tracerConfig": config}
    return request("debug_traceBlockByHash", BLOCK_HASH, options)


def refusal(api: Api, message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Make a rejected call alone and in a batch. Return HTTP status and error object."""
    alone = api.send(message)
    batch = api.send([{**message, "id": 7}, request("eth_chainId")])
    assert batch.status_code == 200
    refused, answered = batch.json()
    assert (refused["id"], alone.json()["id"]) == (7, 1)
    assert answered["result"] == "0x31773"
    assert refused["error"] == alone.json()["error"]
    assert alone.headers["content-type"] == "application/json"
    return alone.status_code, refused["error"]


@pytest.mark.parametrize(("method", "block"), METHODS)
def test_key_that_was_not_granted_tracing_is_refused(
    live: Live, api_key: tuple[str, ApiKey], method: str, block: str
) -> None:
    secret, asking = api_key
    with live.api("alpha", secret) as api:
        status, told = refusal(api, request(method, block, {"tracer": "nonsense"}))
    assert status == 403
    assert told == {
        "code": -32002,
        "message": f"{method} is not enabled for this API key on alpha"
        "; ask mail@example.org about custom plans",
        "data": {
            "reason": "method_not_entitled",
            "see": f"{live.base_url}/docs/errors#method_not_entitled",
            "request_access": live.base_url
            + reverse("dashboard:ask", args=[asking.pk, "alpha"]),
            "method": method,
            "network": "alpha",
        },
    }


def test_entitlement_is_for_its_network_alone(
    live: Live, api_key: tuple[str, ApiKey]
) -> None:
    secret, granted = api_key
    grant_entitlement(api_key=granted, network=network("alpha"))
    with live.api("alpha", secret) as alpha, live.api("beta", secret) as beta:
        assert len(alpha.send(call("callTracer")).json()["result"]) > 0
        status, told = refusal(beta, call("prestateTracer"))
    assert (status, told["data"]["network"]) == (403, "beta")


@pytest.mark.parametrize(("method", "block"), METHODS)
def test_tracer_that_the_network_lacks_is_reported_with_those_it_has(
    live: Live, method: str, block: str
) -> None:
    with live.api("beta", live.new_key(may_trace=True)) as api:
        assert api.send(call("prestateTracer")).json()["result"]
        status, told = refusal(api, request(method, block, {"tracer": "callTracer"}))
    assert status == 200
    assert told == {
        "code": -32602,
        "message": 'invalid params: tracer "callTracer" is not available on beta'
        '; available: "muxTracer", "prestateTracer"',
        "data": {
            "reason": "tracer_not_available",
            "see": f"{live.base_url}/docs/errors#tracer_not_available",
            "tracer": "callTracer",
            "network": "beta",
            "available": ["muxTracer", "prestateTracer"],
        },
    }


def test_tracer_that_the_key_lacks_is_refused_also_inside_a_mux(
    live: Live, api_key: tuple[str, ApiKey]
) -> None:
    secret, granted = api_key
    grant_entitlement(
        api_key=granted, network=network("alpha"), tracers=["callTracer", "muxTracer"]
    )
    with live.api("alpha", secret) as api:
        assert "result" in api.send(call("muxTracer", callTracer={})).json()
        for message in (
            call("prestateTracer"),
            call("muxTracer", callTracer={}, prestateTracer={}),
        ):
            status, told = refusal(api, message)
            assert status == 403
            assert told["code"] == -32002
            assert told["message"] == (
                'tracer "prestateTracer" is not enabled for this API key on alpha'
                "; ask mail@example.org about custom plans"
            )
            assert told["data"]["reason"] == "tracer_not_entitled"
        status, told = refusal(api, request("debug_traceBlockByHash", BLOCK_HASH))
        assert (status, told["data"]["tracer"]) == (403, "structLog")


def test_granting_and_withdrawing_act_while_the_key_is_in_use(
    live: Live, api_key: tuple[str, ApiKey]
) -> None:
    secret, granted = api_key
    with live.api("alpha", secret) as api:

        def status() -> int:
            return api.send(call("callTracer")).status_code

        assert status() == 403
        for _ in range(5):
            entitlement = grant_entitlement(api_key=granted, network=network("alpha"))
            wait_until(lambda: status() == 200)
            withdraw_entitlement(entitlement=entitlement)
            wait_until(lambda: status() == 403)


def test_entitlement_ends_at_its_moment_although_nothing_is_announced(
    live: Live, api_key: tuple[str, ApiKey]
) -> None:
    secret, granted = api_key
    expires_at = timezone.now() + timedelta(seconds=3)
    grant_entitlement(api_key=granted, network=network("alpha"), expires_at=expires_at)
    with live.api("alpha", secret) as api:
        wait_until(lambda: api.send(call("callTracer")).status_code == 200)
        asked = timezone.now()
        while api.send(call("callTracer")).status_code == 200:
            assert asked < expires_at
            asked = timezone.now()
        assert timezone.now() >= expires_at
        _, told = refusal(api, call("callTracer"))
    moment = f"{expires_at:%Y-%m-%dT%H:%M:%SZ}"
    assert told["data"]["expired_at"] == moment
    assert f"on alpha: the entitlement expired on {moment}; ask " in told["message"]
