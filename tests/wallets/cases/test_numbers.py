"""Every case has a test."""

from __future__ import annotations

import re
from pathlib import Path

WALLETS = Path(__file__).resolve().parents[1]

ALL = set(range(1, 134))

NUMBERS = re.compile(r"mark\.case\(([\d, ]+)\)|(?<![\w.])case\(\s*(\d+),")
"""The numbers of a test, or of one of its parameters."""


def test_every_case_is_tested():
    found = set()
    for path in WALLETS.rglob("test_*.py"):
        for several, one in NUMBERS.findall(path.read_text()):
            found |= {int(number) for number in (several or one).split(",")}
    assert found == ALL
