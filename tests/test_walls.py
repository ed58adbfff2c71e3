"""Imports run one way, floor by floor, and some modules know no Django at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FLOORS = [
    {"config"},
    {"wallets"},
    {"nodeapi"},
    {"keys"},
    {"networks"},
    {"jsonrpc", "postgres"},
]
"""From the top down: a package may import those of its own floor's below."""

HEIGHT = {
    package: len(FLOORS) - depth
    for depth, floor in enumerate(FLOORS)
    for package in floor
}

PURE = [
    "jsonrpc",
    "postgres",
    "nodeapi.encoding",
    "nodeapi.documents",
    "nodeapi.receipts",
    "nodeapi.evm",
    "nodeapi.tracers",
    "keys.allowlists",
    "keys.charts",
    "keys.format",
    "keys.limiter",
    "keys.latencies",
    "keys.metering",
    "keys.places",
    "keys.plans",
    "keys.refusals",
    "keys.strangers",
    "wallets.caip",
    "wallets.scopes",
    "wallets.proposals",
]
"""Modules and packages that must stand without Django."""

DJANGO = {"django", "rest_framework", "channels"}


def modules() -> dict[str, Path]:
    """Return every module of the project by its dotted name."""
    found = {}
    for package in HEIGHT:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            found[".".join(parts)] = path
    return found


def imports(name: str, path: Path) -> Iterator[str]:
    """Yield what a module imports, wherever in it, types included."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = (
                    name.split(".")
                    if path.name == "__init__.py"
                    else name.split(".")[:-1]
                )
                kept = package[: len(package) - node.level + 1]
                base = ".".join([*kept, base] if base else kept)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


MODULES = modules()


def needs(name: str) -> set[str]:
    """Return the project's modules that importing this one loads, it included."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        module = waiting.pop()
        if module in seen or module not in MODULES:
            continue
        seen.add(module)
        waiting.append(module.rpartition(".")[0])  # a package loads before its modules
        waiting.extend(imports(module, MODULES[module]))
    return seen


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_every_package_stands_on_a_floor():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - {"tests", "bench"} == set(HEIGHT) & packages


def test_no_package_imports_from_a_floor_above_or_beside_its_own():
    wrong = set()
    for name, path in MODULES.items():
        package = name.partition(".")[0]
        for imported in imports(name, path):
            other = imported.partition(".")[0]
            if other != package and HEIGHT.get(other, 0) >= HEIGHT[package]:
                wrong.add(f"{name} imports {imported}")
    assert sorted(wrong) == []


@pytest.mark.parametrize("pure", PURE)
def test_what_must_stand_without_django_does(pure):
    wrong = set()
    for name in (name for name in MODULES if is_within(name, pure)):
        for module in needs(name):
            for imported in imports(module, MODULES[module]):
                if imported.partition(".")[0] in DJANGO:
                    wrong.add(f"{name}: {module} imports {imported}")
    assert sorted(wrong) == []


def test_what_must_stand_without_django_exists():
    expected = {name for name in PURE if name != "nodeapi.tracers"}
    assert {name for name in expected if name not in MODULES} == set()


def test_the_environment_is_read_in_one_place():
    """`config.env` reads settings; the rest of config hands the environment on."""
    wrong = []
    for name, path in MODULES.items():
        if name.partition(".")[0] != "config":
            text = path.read_text()
            if "os.environ" in text or "os.getenv" in text:
                wrong.append(name)
    assert wrong == []


LONG_BY_DESIGN = {"nodeapi.evm.interpreter.run"}
"""The interpreter's loop: a call for each step would cost what the loop is there for."""


def test_modules_and_functions_stay_short():
    long = []
    for name, path in MODULES.items():
        text = path.read_text()
        if len(text.splitlines()) > 400:
            long.append(name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if f"{name}.{node.name}" in LONG_BY_DESIGN:
                    continue
                if length > 40 and ".migrations." not in name:
                    long.append(f"{name}.{node.name}: {length} lines")
    assert long == []
