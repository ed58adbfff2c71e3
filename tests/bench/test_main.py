"""A run of several parts keeps the figures of the parts that succeed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import part, report, turns
from bench.rows import Row

GOOD = Row("import", "a case", 2.0, "blocks/s", 2.0, "another", ">= 1.0")
BAD = Row("import", "a case", 0.5, "blocks/s", 0.5, "another", ">= 1.0")


@pytest.mark.parametrize(
    ("found", "status", "kept"),
    [
        ([GOOD], 0, len(part.PARTS)),
        ([BAD], 1, len(part.PARTS)),
        (None, 1, len(part.PARTS) - 1),
    ],
)
def test_parts_are_put_together(
    found: list[Row] | None,
    status: int,
    kept: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = tmp_path / "results.json"
    monkeypatch.setattr(bench, "RESULTS", results)
    monkeypatch.setattr(
        bench, "measure", lambda name: found if name == "import" else [GOOD]
    )
    assert bench.main([]) == status
    rows, _ = report.read_json(results)
    assert len(rows) == kept
    assert ("without figures: import" in capsys.readouterr().out) == (found is None)


def test_part_that_fails_has_no_figures(capfd: pytest.CaptureFixture[str]) -> None:
    assert bench.measure("none such") is None
    assert "KeyError: 'none such'" in capfd.readouterr().err


def test_unknown_part_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["endpoints"]) == 2
    assert "no part 'endpoints'" in capsys.readouterr().out


def test_budgets_of_parts_and_of_a_whole_run() -> None:
    seconds = [one.seconds for one in part.PARTS.values()]
    assert max(seconds) <= 4 * 60
    assert sum(seconds) <= 29 * 60


@pytest.mark.parametrize("name", part.PARTS)
def test_every_part_has_a_module_and_a_row_in_the_documentation(name: str) -> None:
    assert find_spec(part.PARTS[name].function.partition(":")[0])
    page = Path(__file__).parents[2] / "docs" / "benchmarks.md"
    assert f"\n| `{name}` | " in page.read_text()


def test_rounds_end_when_the_time_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_deadlines", [0.0])
    assert list(turns.rounds(9)) == [1, 2, 3]
    assert list(turns.rounds(2)) == [1, 2]
    monkeypatch.setattr(turns, "_deadlines", [float("inf")])
    assert list(turns.rounds(9)) == list(range(1, 10))
