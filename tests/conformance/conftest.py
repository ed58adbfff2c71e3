"""The folders and parameters of the conformance tests' recorded data."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeapi.methods import registry
from tests.support import execution_apis, geth_tracers


def pytest_configure(config: pytest.Config) -> None:
    """Read recorded data from the folder that the option names."""
    execution_apis.use(config.getoption("--execution-apis"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests with the recorded responses and tracer tests."""
    if "recorded_case" in metafunc.fixturenames:
        _parametrize_recorded(metafunc)
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


def _parametrize_recorded(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test with the recordings of served methods, in lexical order."""
    try:
        folder = execution_apis.folder()
    except pytest.skip.Exception as absent:
        reason = pytest.mark.skip(reason=str(absent))
        metafunc.parametrize("recorded_case", [pytest.param(None, marks=reason)])
        return
    methods = {method.name for method in registry} | {execution_apis.TESTING_METHOD}
    cases = [
        path for path in sorted(folder.glob("*/*.io")) if path.parent.name in methods
    ]
    names = [f"{case.parent.name}/{case.stem}" for case in cases]
    metafunc.parametrize("recorded_case", cases, ids=names)
