"""Where the conformance tests find recorded data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import geth_tracers


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test each case in the folder of tracer tests."""
    if "tracer_case" not in metafunc.fixturenames:
        return
    folder = Path(metafunc.config.getoption("--geth-tracers") or geth_tracers.folder())
    cases = sorted(folder.glob("*/*.json"))
    if not cases:
        reason = pytest.mark.skip(reason=f"no tracer cases in {folder}")
        metafunc.parametrize("tracer_case", [pytest.param(None, marks=reason)])
        return
    names = [f"{case.parent.name}/{case.stem}" for case in cases]
    metafunc.parametrize("tracer_case", cases, ids=names)
