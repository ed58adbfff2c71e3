from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import endpoint

MIB = 1024


@pytest.fixture
def meminfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "meminfo"
    monkeypatch.setattr(endpoint, "MEMINFO", path)
    return path


def settle(meminfo: Path, free: list[int]) -> tuple[bool, int]:
    """Settle with these readings of free MiB; return the outcome and number of rounds."""

    def run_round() -> None:
        mib = next(values)
        meminfo.write_text(f"MemTotal: 9 kB\nMemFree:  {mib * MIB} kB\nBuffers: 7 kB\n")
        ran.append(mib)

    ran: list[int] = []
    values: Iterator[int] = iter(free)
    run_round()
    return endpoint.settle(run_round), len(ran) - 1


@pytest.mark.parametrize(
    ("free", "rounds"),
    [
        ([900, 900, 900], 2),
        ([900, 700, 600, 595, 590], 4),
        ([900, 700, 690, 500, 495, 500], 5),
        ([900, 700, 950, 600, 600, 600], 5),
    ],
)
def test_rounds_go_on_until_two_take_no_more(
    meminfo: Path, free: list[int], rounds: int
) -> None:
    assert settle(meminfo, free) == (True, rounds)


def test_what_does_not_settle_is_reported(
    meminfo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "MAX_SECONDS", 0.01)
    falling = list(range(1_000_000, 0, -20))
    is_settled, _ = settle(meminfo, falling)
    assert not is_settled
