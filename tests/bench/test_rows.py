"""Figures are compared with their requirements, and formatted."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.report import number, read_json, table, write_json
from bench.rows import Row, median_ratio

FAST = Row("import", "ours", 30.0, "blocks/s", 6.0, "bare", ">= 1.0")
SLOW = Row("import", "ours, slow", 3.0, "blocks/s", 0.6, "bare", ">= 1.0")
LARGE = Row("growth", "memory", 2000.0, "MiB", required="<= 1024")


@pytest.mark.parametrize(
    ("row", "misses"), [(FAST, False), (SLOW, True), (LARGE, True)]
)
def test_a_row_misses_when_its_ratio_or_value_is_on_the_wrong_side(
    row: Row, misses: bool
) -> None:
    assert row.misses is misses


def test_without_requirement_nothing_is_missed() -> None:
    assert not Row("x", "y", 0.0, "z").misses


def test_a_ratio_is_taken_within_each_round() -> None:
    # The machine was half as fast in the second round, which does not affect the ratio.
    assert median_ratio([10, 5, 10], [20, 10, 20]) == 0.5


def test_the_table_has_a_line_for_each_case() -> None:
    slower = Row("import", "ours", 40.0, "ms p99")
    text = table([FAST, slower, SLOW])
    assert text.count("\n") == 3
    assert "6.00 of bare, >= 1.0" in text
    assert "40 ms p99" in text
    assert text.count("MISSED") == 1


@pytest.mark.parametrize(
    ("value", "text"), [(0.3141, "0.314"), (31.41, "31.4"), (31410, "31,410")]
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_results_survive_the_file(tmp_path: Path) -> None:
    write_json(tmp_path / "results.json", [FAST, LARGE], {"cores": 2})
    assert read_json(tmp_path / "results.json") == ([FAST, LARGE], {"cores": 2})
