"""The documentation agrees with the code."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name as canonical

from config.lock import pinned
from config.management.commands import document_methods, document_settings
from config.variables.groups import GROUPS
from guide.error_entries import error_entries
from nodeapi.methods import registry
from tests.test_walls import FLOORS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def environment_variables() -> set[str]:
    """Return the names of the settings."""
    return {one.name for group in GROUPS for one in group.variables}


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


def test_the_page_of_settings_is_what_the_code_declares():
    """If this fails, run `make settings`."""
    page = (ROOT / document_settings.PATH).read_text()
    assert page == document_settings.settings_page()


def test_the_page_of_methods_is_what_the_registry_has():
    """If this fails, run `make methods`."""
    page = (ROOT / document_methods.PATH).read_text()
    assert page == document_methods.methods_page()
    documented = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert sorted(documented) == sorted(method.name for method in registry)


def test_every_direct_dependency_has_an_entry_with_its_pin():
    entries = table(ROOT / "docs" / "dependencies.md")
    pins = pinned(ROOT, "requirements-dev.txt")
    direct = RUNTIME | DEVELOP
    assert {name for name in entries if name != "package"} - {"---"} == direct
    assert {name: entries[name] for name in direct} == {
        name: pins[name] for name in direct
    }


def test_pins_exist_for_what_the_ranges_name():
    runtime, develop = (
        pinned(ROOT, "requirements.txt"),
        pinned(ROOT, "requirements-dev.txt"),
    )
    assert set(runtime) >= RUNTIME
    assert set(develop) >= DEVELOP | OPTIONAL
    extra = pinned(ROOT, "requirements-otp.txt")
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
    layout = CONTRIBUTING.partition("## Layout")[2].partition("\n## ")[0]
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {name for name in packages if f"{name}/" not in layout} == set()


def test_files_that_contributors_are_sent_to_exist():
    named = set(re.findall(r"`([a-z]\w*(?:/[\w.-]*)+)`", CONTRIBUTING))
    assert len(named) > 30
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_glossary_defines_each_term_once_and_in_order():
    groups = (ROOT / "docs" / "glossary.md").read_text().split("\n## ")[1:]
    terms = [re.findall(r"^- \*\*(.+?)\*\*", group, re.MULTILINE) for group in groups]
    for group in terms:
        assert group == sorted(group, key=str.lower)
    every = [term.lower() for group in terms for term in group]
    assert sorted(every) == sorted(set(every))
    assert len(every) > 80


def test_readme_fits_on_a_page():
    assert len(README.splitlines()) < 140


def test_changelog_has_the_form_of_keep_a_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert releases[0] == "[Unreleased]"
    for release in releases[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", release)
    kinds = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
    for section in changelog.split("\n## ")[1:]:
        found = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert found == [kind for kind in kinds if kind in found]


def test_changelog_of_customers_names_nothing_of_operators():
    """Settings, commands and targets belong into docs/changes-for-operators.md."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    commands = {path.stem for path in ROOT.glob("*/management/commands/[a-z]*.py")}
    named = set(re.findall(r"`([A-Za-z_]+)", changelog))
    assert named & (commands | environment_variables()) == set()
    assert "manage.py" not in changelog
    assert "`make " not in changelog


def test_the_diagram_of_packages_has_every_package():
    diagram = (ROOT / "docs" / "packages.svg").read_text()
    drawn = set(re.findall(r'class="name"[^>]*>([a-z]+)<', diagram))
    assert set().union(*FLOORS) <= drawn


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_pictures_have_a_text_and_follow_the_colour_scheme(document):
    for text, target in re.findall(r"!\[(.*?)\]\(([^)]+\.svg)\)", document.read_text()):
        picture = (document.parent / target).read_text()
        assert text
        assert 'aria-label="' in picture
        assert "prefers-color-scheme: dark" in picture


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_settings_that_are_named_exist(document):
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", document.read_text()))
    others = {"PORTCULLIS_SITE", "SERVER_ERROR"}  # nginx's template, ethers' error
    others |= {"SSL_CERT_FILE", "SSL_CERT_DIR"}  # OpenSSL's
    assert named - others <= environment_variables()


def test_every_command_is_documented():
    text = "".join(document.read_text() for document in DOCUMENTS)
    commands = {
        path.stem
        for path in ROOT.glob("*/management/commands/*.py")
        if path.stem != "__init__"
    }
    assert {command for command in commands if command not in text} == set()


def test_refusals_that_are_named_exist_with_their_status():
    known = {(entry.status.value, entry.reason) for entry in error_entries()}
    text = "".join(document.read_text() for document in DOCUMENTS)
    named = re.findall(r"\b([45]\d\d) `([a-z]+(?:_[a-z]+)+)`", text)
    assert len(named) > 5
    assert {(int(status), reason) for status, reason in named} <= known


OTHER_WORDS = {
    "he": "they",
    "his": "their",
    "himself": "themselves",
    "nobody": "no …, or a passive sentence",
    "somebody": "a user, an attacker, a client",
    "whoever": "the user, the customer, the caller",
    "strangers": "unknown keys, anonymous clients",
    "told": "reported, answered, sent",
    "hears": "receives",
}
"""Words that the documentation avoids, with the words to use instead."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_use_plain_words(document):
    prose = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(), flags=re.DOTALL)
    words = set(re.findall(r"[a-z]+", prose.lower()))
    assert {word: OTHER_WORDS[word] for word in words & set(OTHER_WORDS)} == {}
