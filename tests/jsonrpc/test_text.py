from __future__ import annotations

import sys
import time

import pytest

from jsonrpc.errors import ParseError
from jsonrpc.text import has_lone_surrogate, parse


@pytest.mark.parametrize(
    "body",
    [
        b'"' + (b"1" * 299 + b"a") * 17_000,
        b'"' + b"1" * 5_000_000,
        b"[" * 5_000_000,
        b'"' + b"\\ud" * 1_700_000,
    ],
    ids=["runs of digits", "one run of digits", "brackets", "surrogates"],
)
def test_no_body_takes_long_to_be_refused(body: bytes) -> None:
    started = time.process_time()
    with pytest.raises(ParseError):
        parse(body)
    # More time than a slow machine needs. Quadratic work would take minutes.
    assert time.process_time() - started < 10


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("depth", [5_000, 500_000])
def test_deep_nesting_is_refused_whatever_the_recursion_limit(
    opening: bytes, closing: bytes, depth: int
) -> None:
    body = opening * depth + b'"\\ud800"' + closing * depth
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)  # importing the EVM does this
    try:
        with pytest.raises(ParseError):
            parse(body)
    finally:
        sys.setrecursionlimit(limit)


def test_integer_too_long_for_a_float_is_read_wherever_it_stands() -> None:
    digits = b"9" * 400
    for body in (
        digits,
        b"-" + digits,
        b"[1," + digits + b"]",
        b'{"a":' + digits + b"}",
    ):
        parse(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb'"\ud800"', True),
        (rb'"a\udfffb"', True),
        (rb'[1, {"a": [{"\ud83d": 1}]}]', True),
        (rb'{"a": "\ude00\ud83d"}', True),
        (rb'"\ud83d\ude00"', False),
        ('{"\N{GRINNING FACE}": [1.5, 1e400, null, true]}'.encode(), False),
        (b"[" * 300 + b"]" * 300, False),
        (b"[" * 300 + rb'"\ud800"' + b"]" * 300, True),
    ],
)
def test_lone_surrogates_are_found_in_strings_and_names(body, expected) -> None:
    assert has_lone_surrogate(parse(body)) is expected
