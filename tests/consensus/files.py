"""Fixture files: their formats, and the tests in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from tests.consensus.blockchain import run_blockchain_test
from tests.consensus.engine import run_engine_test
from tests.consensus.state import run_state_test, state_subtests
from tests.consensus.verdict import (
    Mismatch,
    Status,
    UnknownFormat,
    UnknownNetwork,
    Verdict,
)

Test = tuple[str, Callable[[], None]]
"""A test's name, and the function that executes it, which raises if the test fails."""


def find_files(folder: Path) -> list[Path]:
    """Return the JSON files of a folder, or the one file, largest first.

    Folders whose names begin with a dot are left out: EEST keeps its index in `.meta`.
    """
    if folder.is_file():
        return [folder]
    files = [
        path
        for path in folder.rglob("*.json")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return sorted(files, key=lambda path: (-path.stat().st_size, path))


def read_tests(path: Path) -> Iterator[Test]:
    """Yield the tests of a file, in its order.

    Raises: ValueError when it is no JSON object of objects.
    """
    document = orjson.loads(path.read_bytes())
    if not isinstance(document, dict):
        raise ValueError("the file holds no JSON object")
    for name, fixture in document.items():
        if isinstance(fixture, dict):
            yield from _tests(name, fixture)
        else:
            yield name, partial(_raise_format, f"JSON {type(fixture).__name__}")


def _tests(name: str, fixture: Mapping[str, Any]) -> Iterator[Test]:
    if "blocks" in fixture and "genesisRLP" in fixture:
        yield name, partial(run_blockchain_test, fixture)
    elif "engineNewPayloads" in fixture and "pre" in fixture:
        yield name, partial(run_engine_test, fixture)
    elif "post" in fixture and "transaction" in fixture and "env" in fixture:
        for label, fork, index in state_subtests(fixture):
            yield f"{name} {label}", partial(run_state_test, fixture, fork, index)
    else:
        yield name, partial(_raise_format, _format(fixture))


def _format(fixture: Mapping[str, Any]) -> str:
    """Return the format that a fixture names, or otherwise its fields."""
    info = fixture.get("_info")
    if isinstance(info, dict):
        for key in ("fixture-format", "fixture_format"):
            if key in info:
                return str(info[key])
    fields = sorted(key for key in fixture if not key.startswith("_"))
    return f"fields {', '.join(fields[:6])}" if fields else "no fields"


def _raise_format(name: str) -> None:
    raise UnknownFormat(name)


def execute(name: str, test: Callable[[], None]) -> Verdict:
    """Execute a test. An exception becomes its verdict, and does not end the run."""
    try:
        test()
    except UnknownNetwork as error:
        return Verdict(name, Status.UNKNOWN_NETWORK, str(error))
    except UnknownFormat as error:
        return Verdict(name, Status.UNKNOWN_FORMAT, str(error))
    except Mismatch as error:
        return Verdict(name, Status.FAILED, str(error))
    except Exception as error:
        return Verdict(name, Status.FAILED, f"crashed: {type(error).__name__}: {error}")
    return Verdict(name, Status.PASSED)
