from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from config import install


def test_an_installation_that_is_up_to_date_is_left_alone(tmp_path):
    """No pip is run: there is no `.venv` for it to work on."""
    (tmp_path / "config").mkdir()
    script = shutil.copy(install.__file__, tmp_path / "config" / "install.py")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("django==5.2\n")
    (tmp_path / ".venv").mkdir()
    stamp = tmp_path / ".venv" / "installed-requirements"
    stamp.write_text(install._fingerprint(requirements))
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
    before = install._fingerprint(requirements)
    requirements.write_text("django==5.2.1\n")
    assert install._fingerprint(requirements) != before
