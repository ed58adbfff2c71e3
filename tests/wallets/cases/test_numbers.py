"""Every case has a test."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

ALL = set(range(1, 134))


def marks() -> Iterator[pytest.Mark]:
    """Yield the marks of all tests of the wallet, and of their parameters."""
    for path in sorted((ROOT / "tests" / "wallets").rglob("test_*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = import_module(".".join(parts))
        for name, test in vars(module).items():
            if name.startswith("test_"):
                yield from of_parameters(getattr(test, "pytestmark", []))


def of_parameters(given: list[Any]) -> Iterator[pytest.Mark]:
    for mark in given:
        yield mark
        for row in mark.args[1] if mark.name == "parametrize" else ():
            yield from getattr(row, "marks", ())


def test_every_case_is_tested():
    found = {n for mark in marks() if mark.name == "case" for n in mark.args}
    assert found == ALL
