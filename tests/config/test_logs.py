from __future__ import annotations

import logging

from config.logs import RedactingFormatter, redact

KEY = "nk_0123456789abcdefghijABCDEFGHIJ012345"


def test_a_key_in_a_log_line_is_shortened_to_its_hint():
    line = redact(f"Not Found: /oops/v3/{KEY}?x=1")
    assert line == "Not Found: /oops/v3/nk_0123…2345?x=1"


def test_a_key_in_a_traceback_is_shortened_too():
    try:
        raise ValueError(KEY)
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "failed", (), info)
    line = RedactingFormatter("%(message)s").format(record)
    assert "nk_0123…2345" in line
    assert KEY not in line


def test_other_words_stay_as_they_are():
    assert (
        redact("ink_well nk_short 0x" + "ab" * 32) == "ink_well nk_short 0x" + "ab" * 32
    )


def test_a_key_is_found_behind_whatever_stands_before_it():
    for before in ("", "/", "x", "_", "\\n", "%0A", "é"):
        assert redact(before + KEY) == before + "nk_0123…2345"
