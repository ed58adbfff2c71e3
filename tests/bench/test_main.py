"""A run of several parts keeps the figures of the parts that succeed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import report
from bench.rows import Row

GOOD = Row("import", "a case", 2.0, "blocks/s", 2.0, "another", ">= 1.0")
BAD = Row("import", "a case", 0.5, "blocks/s", 0.5, "another", ">= 1.0")


@pytest.mark.parametrize(
    ("found", "status", "kept", "is_drawn"),
    [
        ([GOOD], 0, len(bench.PARTS), True),
        ([BAD], 1, len(bench.PARTS), True),
        (None, 1, len(bench.PARTS) - 1, False),
    ],
)
def test_parts_are_put_together(
    found: list[Row] | None,
    status: int,
    kept: int,
    is_drawn: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results, plot = tmp_path / "results.json", tmp_path / "plot.svg"
    monkeypatch.setattr(bench, "RESULTS", results)
    monkeypatch.setattr(bench, "PLOT", plot)
    monkeypatch.setattr(bench, "plot", lambda rows: f"<svg>{len(rows)}</svg>")
    monkeypatch.setattr(
        bench, "measure", lambda name: found if name == "import" else [GOOD]
    )
    assert bench.main([]) == status
    rows, _ = report.read_json(results)
    assert len(rows) == kept
    assert plot.exists() == is_drawn
    assert ("without figures: import" in capsys.readouterr().out) == (found is None)


def test_part_that_fails_has_no_figures(capfd: pytest.CaptureFixture[str]) -> None:
    assert bench.measure("none such") is None
    assert "KeyError: 'none such'" in capfd.readouterr().err


def test_unknown_part_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["endpoints"]) == 2
    assert "no part 'endpoints'" in capsys.readouterr().out
