"""Allowlists over real HTTP, for single calls and batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from keys.services import set_allowlist
from tests.support import chains, sample, web
from tests.support.live import Live, api_key_of, live_service, request
from tests.support.waiting import wait_until

ORIGIN = "https://dapp.example"
ADDRESS = "0x" + "ab" * 20
OTHER = "0x" + "cd" * 20
SLOT = "0x" + "00" * 32
REJECTED = "rejected due to API key settings"


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    chains.import_blocks("alpha", sample.genesis(), sample.raw_blocks()[:2])
    with live_service() as live:
        yield live


def restricted(live: Live, **lists: list[str]) -> str:
    """Issue a key with allowlists, by kind."""
    secret = live.new_key()
    for kind, entries in lists.items():
        set_allowlist(api_key=api_key_of(secret), kind=kind, values=entries)
    return secret


def cors(response: httpx.Response) -> tuple[str | None, str | None]:
    headers = response.headers
    return headers.get("access-control-allow-origin"), headers.get("vary")


@pytest.mark.parametrize(
    ("lists", "allowed", "refused", "reason"),
    [
        (
            {"origin": ["*.example"]},
            {"origin": ORIGIN},
            {"origin": "https://evil.test"},
            "origin_not_allowed",
        ),
        (
            {"user_agent": ["MyApp"]},
            {"user-agent": "myapp/1"},
            {"user-agent": "curl/8"},
            "user_agent_not_allowed",
        ),
        (
            {"ip": ["203.0.113.0/24"]},
            {"x-forwarded-for": "198.51.100.1, 203.0.113.9"},
            {"x-forwarded-for": "203.0.113.9, 198.51.100.1"},
            "ip_not_allowed",
        ),
    ],
)
def test_client_that_is_not_on_the_list_is_refused_as_a_whole(
    live: Live,
    lists: dict[str, list[str]],
    allowed: dict[str, str],
    refused: dict[str, str],
    reason: str,
) -> None:
    call = request("eth_chainId")
    with live.api("alpha", restricted(live, **lists)) as api:
        assert api.send(call, **allowed).json()["result"] == "0x31773"
        assert len(api.send([call, call], **allowed).json()) == 2
        alone = api.send(call, **refused)
        batch = api.send([{**call, "id": 5}, {**call, "id": 6}], **refused)
    assert (alone.status_code, batch.status_code) == (403, 403)
    error = alone.json()["error"]
    assert (error["code"], error["message"]) == (-32002, REJECTED)
    assert error["data"] == {
        "reason": reason,
        "see": f"{live.base_url}/docs/errors#{reason}",
    }
    assert batch.json() == [
        {"jsonrpc": "2.0", "id": number, "error": error} for number in (5, 6)
    ]


def test_page_that_is_on_the_list_gets_its_own_origin_back(live: Live) -> None:
    call = request("eth_chainId")
    with live.api("alpha", restricted(live, origin=["*.example"])) as api:
        for message in (call, [call], request("eth_nonsense"), "nonsense"):
            answer = api.send(message, origin=ORIGIN)
            assert cors(answer) == (ORIGIN, "Origin"), message
            assert "access-control-allow-credentials" not in answer.headers
        refusal = api.send(call, origin="https://evil.test")
        assert cors(refusal) == ("*", "Origin")  # so that a page can read the reason
        assert cors(api.send(call)) == ("*", "Origin")
        zipped = api.send([call] * 100, origin=ORIGIN, **{"accept-encoding": "gzip"})
        assert zipped.headers.get_list("vary") == ["Origin", "accept-encoding"]


def test_key_without_origins_may_be_used_from_any_page(live: Live) -> None:
    call = request("eth_chainId")
    for secret in (live.new_key(), restricted(live, ip=["127.0.0.1"])):
        with live.api("alpha", secret) as api:
            assert cors(api.send(call, origin=ORIGIN)) == ("*", None)


def test_preflight_is_answered_before_the_key_is_looked_at(live: Live) -> None:
    secret = restricted(live, origin=["other.example"])
    answer = web.options(
        f"{live.base_url}/alpha/v3/{secret}",
        headers={"origin": ORIGIN, "access-control-request-method": "POST"},
    )
    assert answer.status_code == 204
    assert cors(answer)[0] == "*"


@pytest.mark.parametrize(
    ("lists", "good", "bad", "reason", "detail"),
    [
        (
            {"method": ["eth_chainId"]},
            request("eth_chainId"),
            request("eth_blockNumber"),
            "method_not_allowed",
            {"method": "eth_blockNumber"},
        ),
        (
            {"contract": [ADDRESS.upper().replace("X", "x")]},
            request("eth_getStorageAt", ADDRESS, "0x0"),
            request("eth_getStorageAt", OTHER, "0x0"),
            "contract_not_allowed",
            {"address": OTHER},
        ),
        (
            {"contract": [ADDRESS]},
            request("eth_getStorageValues", {ADDRESS: [SLOT]}),
            request("eth_getStorageValues", {ADDRESS: [SLOT], OTHER: [SLOT]}),
            "contract_not_allowed",
            {"address": OTHER},
        ),
        (
            {"contract": [ADDRESS]},
            request("eth_getBalance", ADDRESS),
            request("eth_getBalance", OTHER),
            "contract_not_allowed",
            {"address": OTHER},
        ),
        (
            {"contract": [ADDRESS]},
            request("eth_call", {"to": ADDRESS}),
            request("eth_call", {"to": OTHER}),
            "contract_not_allowed",
            {"address": OTHER},
        ),
        (
            {"contract": [ADDRESS]},
            request("eth_estimateGas", {"to": ADDRESS}),
            request("eth_estimateGas", {"data": "0x00"}),
            "contract_not_allowed",
            {"address": "0x"},
        ),
        (
            {"contract": [ADDRESS]},
            request("eth_getLogs", {"address": [ADDRESS]}),
            request("eth_getLogs", {"address": [ADDRESS, OTHER]}),
            "contract_not_allowed",
            {"address": OTHER},
        ),
    ],
)
def test_call_that_is_not_on_the_list_is_refused_by_itself_in_a_batch(
    live: Live,
    lists: dict[str, list[str]],
    good: dict[str, Any],
    bad: dict[str, Any],
    reason: str,
    detail: dict[str, str],
) -> None:
    with live.api("alpha", restricted(live, **lists)) as api:
        assert "result" in api.send(good).json()
        alone = api.send(bad)
        batch = api.send([{**bad, "id": 7}, good])
    error = alone.json()["error"]
    assert alone.status_code == 403
    assert (error["code"], error["data"]["reason"]) == (-32002, reason)
    assert error["message"].startswith(REJECTED)
    assert detail.items() <= error["data"].items()
    assert batch.status_code == 200
    refused, answered = batch.json()
    assert (refused["id"], refused["error"]) == (7, error)
    assert "result" in answered


def test_contracts_matter_to_methods_that_name_an_address_alone(live: Live) -> None:
    with live.api("alpha", restricted(live, contract=[ADDRESS])) as api:
        assert api.result("eth_blockNumber") == "0x2"
        assert api.result("eth_getBlockByNumber", "latest", False)


def test_list_acts_while_the_key_is_in_use(live: Live) -> None:
    secret = live.new_key()
    api_key = api_key_of(secret)
    with live.api("alpha", secret) as api:
        for entries, status in ((["203.0.113.9"], 403), ([], 200)):
            set_allowlist(api_key=api_key, kind="ip", values=entries)
            wait_until(
                lambda: api.send(request("eth_chainId")).status_code == status  # noqa: B023  # called at once
            )
