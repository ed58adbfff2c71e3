"""Formatted values can be parsed to the same value."""

from __future__ import annotations

import pytest

from legible import words


@pytest.mark.parametrize(
    ("wei", "text"),
    [
        (0, "0 ether"),
        (1, "1 wei"),
        (-999_999_999, "−999,999,999 wei"),
        (10**9, "0.000000001 ether"),
        (15 * 10**17, "1.5 ether"),
        (-(10**18), "−1 ether"),
        (1_234_000 * 10**18, "1,234,000 ether"),
        (2**256 - 1, f"{(2**256 - 1) // 10**18:,}.584007913129639935 ether"),
    ],
)
def test_amounts_are_exact(wei, text):
    assert words.ether(wei) == text


@pytest.mark.parametrize(
    ("wei", "text"), [(7, "0.000000007 gwei"), (20 * 10**9, "20 gwei"), (0, "0 gwei")]
)
def test_gas_prices_are_exact(wei, text):
    assert words.gwei(wei) == text


def test_long_data_is_cut_and_short_data_is_not():
    assert words.hexadecimal(b"\x01" * words.MAX_DATA) == "0x" + "01" * words.MAX_DATA
    assert words.hexadecimal(bytes(10**6)).endswith("00…")
    assert len(words.hexadecimal(bytes(10**6))) < 300


def test_long_texts_are_cut():
    assert words.printable("x" * 10**6) == "x" * words.MAX_TEXT + "…"


@pytest.mark.parametrize("timestamp", [2**63, -(2**63), 10**12])
def test_times_that_no_calendar_has_stay_numbers(timestamp):
    assert words.moment(timestamp) == f"second {timestamp:,}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min")),
        *((3600, "1 h"), (86_400, "1 d"), (86_400 * 1234, "1,234 d")),
    ],
)
def test_ages_have_one_unit(seconds, text):
    assert words.age(seconds) == text


@pytest.mark.parametrize(
    ("wei", "text"),
    [
        *((0, "0 wei"), (7, "7 wei"), (99_999, "99,999 wei")),
        *((10**5, "0.0001 gwei"), (836_056, "0.000836 gwei")),
        *((1_054_321, "0.00105 gwei"), (1_234_567_890, "1.235 gwei")),
        (10**12, "1,000.000 gwei"),
    ],
)
def test_short_gas_prices_are_rounded(wei, text):
    assert words.short_gwei(wei) == text
