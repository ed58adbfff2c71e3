"""Refusals of batches, request bodies and HTTP methods."""

from __future__ import annotations

import json

import pytest

from tests.clients.conftest import Desk
from tests.clients.programs import Answer, Curl, Ethers, Viem
from tests.support.live import request
from tests.support.refusals import CHAIN_ID, RECEIPTS

FULL_BLOCK = request("eth_getBlockByNumber", "0x0", True)

TOO_LARGE = Answer(None, -32600, "batch too large")
TOO_COSTLY = Answer(
    *(None, -32600),
    "batch needs 110 credits, more than this key's burst of 100: split it",
)
TOO_LONG = Answer(None, -32003, "response too large")


@pytest.mark.parametrize("client", ["viem", "ethers"])
def test_batch_that_is_too_costly_is_refused_for_each_call(
    desk: Desk, client: str, request: pytest.FixtureRequest
) -> None:
    program: Viem | Ethers = request.getfixturevalue(client)
    headers = desk.headers()
    answers = program.ask(desk.url("poor"), [RECEIPTS] * 11, headers)
    assert answers == [TOO_COSTLY] * 11
    assert len(desk.seen(headers)) == 1


@pytest.mark.parametrize("client", ["viem", "ethers"])
def test_answers_beyond_the_size_of_a_batch_are_errors_among_results(
    desk: Desk, client: str, request: pytest.FixtureRequest
) -> None:
    program: Viem | Ethers = request.getfixturevalue(client)
    headers = desk.headers()
    answers = program.ask(desk.url("plain"), [FULL_BLOCK] * 50, headers)
    fitting = answers.index(TOO_LONG)
    assert fitting > 0
    assert answers[fitting:] == [TOO_LONG] * (50 - fitting)
    assert [answer.result["number"] for answer in answers[:fitting]] == [
        "0x0"
    ] * fitting
    assert len(desk.seen(headers)) == 1


def test_batch_of_too_many_calls_is_refused_once(
    desk: Desk, viem: Viem, ethers: Ethers
) -> None:
    """As in geth, only the first call is answered. ethers reports the others as missing."""
    headers = desk.headers()
    assert viem.ask(desk.url("plain"), [CHAIN_ID] * 51, headers) == [TOO_LARGE] * 51
    missing = Answer(None, None, "missing response for request")
    answers = ethers.ask(desk.url("plain"), [CHAIN_ID] * 51, headers)
    assert answers == [TOO_LARGE, *[missing] * 50]
    assert len(desk.seen(headers)) == 2


BODIES = {
    "nothing": ("", 400, -32700, "parse error"),
    "no JSON": ("{", 400, -32700, "parse error"),
    "no call": ("[]", None, -32600, "empty batch"),
}
OPTIONS = {
    "no POST": (["--request", "GET"], 405, "POST only"),
    "other media type": (
        ["--header", "Content-Type: text/plain"],
        415,
        "content-type must be application/json",
    ),
}


@pytest.mark.parametrize(("body", "status", "code", "message"), BODIES.values())
def test_body_that_is_no_request_is_refused(
    desk: Desk, curl: Curl, body: str, status: int | None, code: int, message: str
) -> None:
    answer = curl.post(desk.url("plain"), body, {})
    assert answer.status == status
    assert json.loads(answer.result)["error"] == {"code": code, "message": message}


@pytest.mark.parametrize(("options", "status", "message"), OPTIONS.values())
def test_request_of_another_form_is_refused(
    desk: Desk, curl: Curl, options: list[str], status: int, message: str
) -> None:
    body = json.dumps(CHAIN_ID)
    answer = curl.post(desk.url("plain"), body, {}, *options)
    assert answer.status == status
    assert json.loads(answer.result)["error"]["message"] == message
