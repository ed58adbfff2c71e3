"""What the documentation says about targets, settings and dependencies is so."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from config.lock import canonical
from nodeapi.methods import registry

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


READERS = {f"env.{kind}" for kind in ("text", "integer", "boolean", "words", "one_of")}


def environment_variables() -> set[str]:
    """Return the names that the project asks the environment for."""
    found = set()
    for path in (ROOT / "config").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                reader = ast.unparse(node.func)
                if reader in READERS:
                    found.add(ast.literal_eval(node.args[0]))
                elif reader == "env.given":
                    found |= {keyword.arg for keyword in node.keywords}
    return found | {"VAR_DIR"}


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def table(document: Path) -> dict[str, str]:
    """Return the second column of a document's tables by the first."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", document.read_text(), re.MULTILINE)
    return {first.strip("`"): second.strip("`") for first, second in rows}


def requirements(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().split()
    return dict(line.split("==") for line in lines)


def names(ranges: list[str]) -> set[str]:
    return {canonical(re.split(r"[<>=\[!~ ]", entry)[0]) for entry in ranges}


RUNTIME = names(PROJECT["project"]["dependencies"])
OPTIONAL = names(PROJECT["project"]["optional-dependencies"]["otp"])
DEVELOP = names(PROJECT["dependency-groups"]["dev"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_that_is_named_exists(document):
    code = set(re.findall(r"^make ([a-z-]+)", document.read_text(), re.MULTILINE))
    quoted = set(re.findall(r"`make ([a-z-]+)", document.read_text()))
    assert code | quoted <= targets()


def test_every_make_target_is_listed_by_make_help():
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)) == targets()


def test_every_setting_of_the_environment_is_documented():
    settings = README.partition("## Settings")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `([A-Z_]+)`", settings, re.MULTILINE))
    assert documented == environment_variables()


def test_every_method_that_is_served_is_documented_and_no_other():
    methods = README.partition("## Networks and methods")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", methods, re.MULTILINE)
    documented = re.findall(r"`([^`]+)`", " ".join(rows))
    assert sorted(documented) == sorted(method.name for method in registry)


def test_every_direct_dependency_has_an_entry_with_its_pin():
    entries = table(ROOT / "docs" / "dependencies.md")
    pins = requirements("requirements-dev.txt")
    direct = RUNTIME | DEVELOP
    assert {name for name in entries if name != "package"} - {"---"} == direct
    assert {name: entries[name] for name in direct} == {
        name: pins[name] for name in direct
    }


def test_pins_exist_for_what_the_ranges_name():
    runtime, develop = (
        requirements("requirements.txt"),
        requirements("requirements-dev.txt"),
    )
    assert set(runtime) >= RUNTIME
    assert set(develop) >= DEVELOP | OPTIONAL
    extra = requirements("requirements-otp.txt")
    assert set(extra) >= OPTIONAL
    assert extra.items() <= develop.items()
    assert runtime.items() <= develop.items()


def test_what_the_code_imports_is_declared():
    distributions = packages_distributions()
    ours = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    missing = {}
    for package in ours - {"tests", "bench"}:
        for path in (ROOT / package).rglob("*.py"):
            for module in imported_packages(path) - ours - sys.stdlib_module_names:
                found = {canonical(name) for name in distributions[module]}
                if not found & (RUNTIME | OPTIONAL):
                    missing[module] = str(path.relative_to(ROOT))
    assert missing == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_every_command_of_the_readme_exists():
    named = set(re.findall(r"manage\.py ([a-z_]+)", README))
    found = {path.stem for path in ROOT.glob("*/management/commands/*.py")}
    assert named - found == set()


def test_the_layout_names_every_package():
    layout = README.partition("## Layout")[2].partition("\n## ")[0]
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {name for name in packages if f"{name}/" not in layout} == set()
