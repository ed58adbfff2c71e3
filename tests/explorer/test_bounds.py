"""Limits on the size of long values that the pages unpack and show."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import pytest
from django.test import RequestFactory

from evm.tracers.record import TOO_LARGE, pack
from explorer import recorded, views
from explorer.calls import MAX_CALLS
from explorer.flame import MAX_ROWS
from explorer.pending import SCOPE_KEY
from keys.models import User
from nodeapi.models import TransactionRecord
from tests.explorer.pages import (
    DEEP,
    MIXED,
    REVERTED,
    WIDE,
    parsed,
    row,
    text,
    transaction_path,
)

pytestmark = pytest.mark.usefixtures("hard_network")


def test_of_many_calls_the_first_are_shown_and_the_rest_counted(staff):
    page = text(staff.get(transaction_path(WIDE)))
    assert f"first {MAX_CALLS} calls are shown. Not shown: {20_001 - MAX_CALLS:,} more calls" in page  # fmt: skip
    assert len(page) < 500_000
    assert "20,000 short calls" in page
    parsed(page)


def test_deep_calls_stay_within_what_browsers_nest(staff):
    page = text(staff.get(transaction_path(DEEP)))
    assert len(re.findall(r'id="call-\d+"', page)) == 301
    assert parsed(page).depth < 200
    assert page.count("<rect") == MAX_ROWS


def test_bars_lead_to_calls_that_are_there(staff):
    for index in (WIDE, DEEP, MIXED):
        page = text(staff.get(transaction_path(index)))
        targets = set(re.findall(r'href="#(call-\d+)"', page))
        assert targets
        assert targets <= set(parsed(page).ids)


@pytest.fixture
def changed_record() -> Any:
    """Return a transaction's record, and restore it after the test."""
    place = {"block": row(REVERTED).block_id, "index": REVERTED}
    kept = TransactionRecord.objects.filter(**place)
    before = kept.values("calls", "prestate", "details", "calls_size").get()
    yield kept
    kept.update(**before)


def test_what_was_too_much_to_be_recorded_is_said_to_be(staff, changed_record):
    changed_record.update(calls=TOO_LARGE, calls_size=0)
    page = text(staff.get(transaction_path(REVERTED)))
    assert "too large to be stored" in page
    assert 'id="call-1"' not in page
    assert "balance" in page


def test_what_is_too_long_for_a_page_is_not_unpacked(staff, changed_record):
    changed_record.update(calls_size=recorded.MAX_UNPACKED_BYTES + 1)
    assert "too long to show here" in text(staff.get(transaction_path(REVERTED)))


def test_records_that_unpack_to_more_than_they_seem_are_not_unpacked(
    staff, changed_record
):
    long = pack(bytes(recorded.MAX_UNPACKED_BYTES + 1))
    assert len(long) < 10_000
    changed_record.update(details=long)
    page = text(staff.get(transaction_path(REVERTED)))
    assert page.count("too long to show here") == 3  # gas, calls, changes


def test_only_a_few_long_records_are_in_memory_at_once(staff, monkeypatch):
    monkeypatch.setattr(recorded, "WAIT_SECONDS", 0.01)
    with recorded.room(), recorded.room():
        response = staff.get(transaction_path(REVERTED))
    assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert text(staff.get(transaction_path(REVERTED)))


class OtherPages:
    """Loads as many other pages as possible while upstreams look for a transaction."""

    def transaction(self, network_id: int, name: bytes) -> None:
        with recorded.room(), recorded.room():
            pass


def test_other_pages_do_not_wait_for_the_upstreams_of_one(staff, monkeypatch):
    monkeypatch.setattr(recorded, "WAIT_SECONDS", 0.01)
    name = bytes.fromhex("56" * 32)
    request: Any = RequestFactory().get(f"/explore/hard/tx/0x{name.hex()}")
    request.user = User.objects.get(email="staff@example.org")
    request.scope = {SCOPE_KEY: OtherPages()}
    response = views.transaction(request, slug="hard", name=name)
    assert response.status_code == HTTPStatus.NOT_FOUND
