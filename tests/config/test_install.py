from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from config import install, package_indexes
from tests.support.wheels import write_wheel


def project(root: Path, pins: str) -> Path:
    """Make a project of its own in a folder, and return its requirements file."""
    config = root / "config"
    config.mkdir(parents=True, exist_ok=True)
    for module in (install, package_indexes):
        shutil.copy(module.__file__, config)
    (root / "requirements-dev.txt").write_text("")
    requirements = root / "requirements.txt"
    requirements.write_text(pins)
    return requirements


def install_from(wheels: Path, root: Path, pins: str) -> subprocess.CompletedProcess:
    """Install pins in a project of its own, from a folder of wheels."""
    project(root, pins)
    return subprocess.run(
        [sys.executable, "-m", "config.install", "requirements.txt"],
        cwd=root,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("PIP_")},
            **{"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"},
            "PIP_FIND_LINKS": str(wheels),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_only_files_with_a_pinned_hash_are_installed(tmp_path):
    wheels, root = tmp_path / "wheels", tmp_path / "project"
    right = write_wheel(wheels, "native", "1.0")
    wrong = hashlib.sha256(b"another file").hexdigest()
    for pins in (f"native==1.0 --hash=sha256:{wrong}\n", "native==1.0\n"):
        done = install_from(wheels, root, pins)
        assert done.returncode != 0
        assert "hash" in done.stderr.lower()
        assert not list(root.glob(".venv/lib/*/site-packages/native.py"))
        assert not (root / ".venv" / "installed-requirements").exists()
    pins = f"native==1.0 --hash=sha256:{wrong} --hash=sha256:{right}\n"
    done = install_from(wheels, root, pins)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(root.glob(".venv/lib/*/site-packages/native.py"))


def test_an_installation_that_is_up_to_date_is_left_alone(tmp_path):
    """pip is not run. It would fail, because there is no `.venv`."""
    requirements = project(tmp_path, "django==5.2\n")
    (tmp_path / ".venv").mkdir()
    stamp = tmp_path / ".venv" / "installed-requirements"
    stamp.write_text(install.fingerprint(requirements))
    done = subprocess.run(
        [sys.executable, "-S", "-m", "config.install", "requirements.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout + done.stderr == ""


def test_other_pins_are_another_installation(tmp_path):
    requirements = Path(tmp_path / "requirements.txt")
    requirements.write_text("django==5.2\n")
    before = install.fingerprint(requirements)
    requirements.write_text("django==5.2.1\n")
    assert install.fingerprint(requirements) != before


def run_as(version: tuple[int, int], root: Path, *arguments: str):
    """Run the module as if the interpreter had another version."""
    code = (
        "import runpy, sys\n"
        f"sys.version_info = {(*version, 9, 'final', 0)}\n"
        f"sys.argv = {['install', *arguments]}\n"
        "runpy.run_module('config.install', run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (4, 0)])
def test_unsupported_version_is_one_line_before_anything_is_created(version, tmp_path):
    project(tmp_path, "django==5.2\n")
    before = {path.name for path in tmp_path.iterdir()}
    done = run_as(version, tmp_path, "requirements.txt")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Python 3.11, 3.12 or 3.13 is required, and ")
    assert f" is {version[0]}.{version[1]}.9." in line
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_version_that_can_not_read_the_script_is_reported_by_make(tmp_path):
    shutil.copy(install.ROOT / "Makefile", tmp_path)
    old = tmp_path / "python2"
    old.write_text("#!/bin/sh\necho SyntaxError >&2\nexit 1\n")
    old.chmod(0o755)
    done = subprocess.run(
        ["make", "install", f"PYTHON={old}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    first, *_ = done.stderr.splitlines()
    assert first.startswith("Python 3.11, 3.12 or 3.13 is required.")
    assert "SyntaxError" not in done.stderr


def test_environment_of_another_version_is_replaced(tmp_path):
    wheels, root = tmp_path / "wheels", tmp_path / "project"
    right = write_wheel(wheels, "native", "1.0")
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").symlink_to("/bin/false")
    (root / ".venv" / "pyvenv.cfg").write_text("version = 3.10.4\n")
    done = install_from(wheels, root, f"native==1.0 --hash=sha256:{right}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(root.glob(".venv/lib/*/site-packages/native.py"))
    assert "version = 3.10" not in (root / ".venv" / "pyvenv.cfg").read_text()


def test_supported_versions_are_those_of_the_project():
    project = tomllib.loads((install.ROOT / "pyproject.toml").read_text())["project"]
    (first, last) = install.SUPPORTED[0], install.SUPPORTED[-1]
    assert project["requires-python"] == (
        f">={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}"
    )
