from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from config import install
from tests.support.wheels import write_wheel


def install_from(wheels: Path, root: Path, pins: str) -> subprocess.CompletedProcess:
    """Run the script in a project of its own, with a folder of wheels for pip."""
    (root / "config").mkdir(parents=True, exist_ok=True)
    script = shutil.copy(install.__file__, root / "config" / "install.py")
    (root / "requirements.txt").write_text(pins)
    return subprocess.run(
        [sys.executable, script, "requirements.txt"],
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
    """No pip is run: there is no `.venv` for it to work on."""
    (tmp_path / "config").mkdir()
    script = shutil.copy(install.__file__, tmp_path / "config" / "install.py")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("django==5.2\n")
    (tmp_path / ".venv").mkdir()
    stamp = tmp_path / ".venv" / "installed-requirements"
    stamp.write_text(install.fingerprint(requirements))
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, "requirements.txt"],
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
