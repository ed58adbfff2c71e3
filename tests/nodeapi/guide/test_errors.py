"""The generated page of errors matches the code."""

from __future__ import annotations

import re

from django.test import Client

from jsonrpc.errors import error_classes
from nodeapi.guide.errors import error_entries


def test_each_reason_has_a_place_on_the_page_that_errors_point_to() -> None:
    page = Client().get("/docs/errors").content.decode()
    places = set(re.findall(r'<tr id="([^"]+)"', page))
    assert places == {error.reason for error in error_classes() if error.reason}
    assert "key_invalid" in places


def test_each_error_says_when_it_is_raised() -> None:
    for entry in error_entries():
        assert re.fullmatch(r"(When|For|Once|If|Where)\b.*\.", entry.when), entry.name


def test_referrer_policy_hides_pages_from_other_sites_and_keeps_the_origin_of_forms() -> (
    None
):
    # Browsers send "Origin: null" from a page with no-referrer, which CSRF refuses.
    assert Client().get("/docs/errors")["Referrer-Policy"] == "same-origin"
