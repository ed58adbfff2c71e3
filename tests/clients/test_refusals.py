"""How each client shows each refusal, and how often it repeats the request."""

from __future__ import annotations

import pytest

from tests.clients.conftest import Desk
from tests.clients.programs import Cast, Program
from tests.support.live import request
from tests.support.refusals import MAX_BODY_BYTES, ROWS, Row

LONG = Row(
    *("plain", request("web3_sha3", "0x" + "00" * (MAX_BODY_BYTES // 2)), 413, -32600),
    f"request body too large: limit {MAX_BODY_BYTES} bytes",
)
# The omitted row has a Retry-After header, which test_patience covers.
CASES = {name: row for name, row in ROWS.items() if row.status != 429}
CASES["body that is too long"] = LONG


def is_possible(program: Program, row: Row) -> bool:
    """Return whether a client can send this request. cast sends string methods only."""
    return not isinstance(program, Cast) or isinstance(row.call["method"], str)


@pytest.mark.parametrize("row", CASES.values(), ids=CASES)
def test_call_is_refused(desk: Desk, program: Program, row: Row) -> None:
    if not is_possible(program, row):
        return
    headers = desk.headers(**row.sent)
    assert program.ask(desk.url(row.key), [row.call], headers) == [
        program.shown(row, in_batch=False)
    ]
    asked = desk.seen(headers)
    assert [line["status"] for line in asked] == [row.status] * program.requests(
        row, in_batch=False
    )


@pytest.mark.parametrize("row", CASES.values(), ids=CASES)
def test_batch_is_refused(desk: Desk, program: Program, row: Row) -> None:
    if not program.batches or row is LONG:
        return
    headers = desk.headers(**row.sent)
    calls = [{**row.call, "id": call_id} for call_id in (1, 2)]
    shown = program.shown(row, in_batch=True)
    assert program.ask(desk.url(row.key), calls, headers) == [shown] * 2
    asked = desk.seen(headers)
    assert [line["status"] for line in asked] == [
        row.status if row.of_request else 200
    ] * program.requests(row, in_batch=True)
