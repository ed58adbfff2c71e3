from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from networks.validators import (
    MAX_HEADER_VALUE,
    MAX_HEADERS,
    validate_headers,
    validate_upstream_url,
)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8545",
        "https://node.example/v3/key?x=y",
        "ws://node:8546",
        "wss://user:password@node.example/",
        "http://[::1]:8545/",
        "http://my_container:8545",
    ],
)
def test_addresses_of_nodes_are_accepted(url: str) -> None:
    validate_upstream_url(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "a space"),
        ("ftp://node/SECRET", "begin with http://"),
        ("node:8545/SECRET", "begin with http://"),
        ("HTTP://node/SECRET", "begin with http://"),
        ("http:/node/SECRET", "begin with http://"),
        ("http:///SECRET", "no host"),
        ("http://node:99999/SECRET", "port is malformed"),
        ("http://node:0/SECRET", "port is malformed"),
        ("http://node:port/SECRET", "port is malformed"),
        ("http://[::/SECRET", "host or port is malformed"),
        ("http://no$de/SECRET", "host or port is malformed"),
        ("http://node/SECRET x", "has a space"),
        ("http://node/SECRET\n", "has a space"),
        ("http://node/SECRET\u202e", "not ASCII"),
        ("http://node/#SECRET", "fragment"),
    ],
)
def test_other_addresses_are_rejected_without_being_repeated(
    url: str, reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason) as caught:
        validate_upstream_url(url)
    assert "SECRET" not in str(caught.value)


def test_headers_have_names_and_values() -> None:
    validate_headers({})
    validate_headers({"Authorization": "Bearer x.y z", "X-Key": "1"})
    validate_headers({f"X-{n}": "x" * MAX_HEADER_VALUE for n in range(MAX_HEADERS)})


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (["SECRET"], "must be an object"),
        ("SECRET", "must be an object"),
        ({f"X-{n}": "SECRET" for n in range(MAX_HEADERS + 1)}, "at most 20 headers"),
        ({"": "SECRET"}, "invalid name"),
        ({"X Y": "SECRET"}, "invalid name"),
        ({"X:": "SECRET"}, "invalid name"),
        ({"x" * 101: "SECRET"}, "invalid name"),
        ({"Host": "SECRET"}, "header Host is set automatically"),
        ({"content-Length": "SECRET"}, "is set automatically"),
        ({"X-Key": "SECRET", "x-key": "SECRET"}, "header x-key occurs twice"),
        ({"X-Key": ""}, "X-Key has to be visible"),
        ({"X-Key": 5}, "X-Key has to be visible"),
        ({"X-Key": "SECRET\r\nX-Other: 1"}, "X-Key has to be visible"),
        ({"X-Key": "SECRET\u202e"}, "X-Key has to be visible"),
        ({"X-Key": " SECRET"}, "X-Key has to be visible"),
        ({"X-Key": "SECRET" * 1000}, "X-Key is longer than 4096"),
    ],
)
def test_other_headers_are_rejected_without_their_values(
    headers: Any, reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason) as caught:
        validate_headers(headers)
    assert "SECRET" not in str(caught.value)
