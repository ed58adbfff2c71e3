"""Tests of the launcher, which need root: only root can change to another user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config.embedded import launcher

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users"),
    pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux'"),
]

OTHER = next(user for user in pwd.getpwall() if user.pw_uid != 0)
WEAKEST = (
    launcher.CAP_DAC_READ_SEARCH
    if launcher.permitted_capabilities() >> launcher.CAP_DAC_READ_SEARCH & 1
    else launcher.CAP_DAC_OVERRIDE  # root in a container has this capability only
)


@pytest.fixture
def program(tmp_path) -> Path:
    """Return a program that only root can reach. It prints its user and capabilities."""
    folder = tmp_path / "closed"
    folder.mkdir()
    path = folder / "program"
    path.write_text(
        "#!/bin/sh\n"
        'test -x "$0" && echo reaches itself\n'
        "id -u\n"
        "grep -E '^Cap(Eff|Amb)' /proc/self/status\n"
    )
    path.chmod(0o755)
    return path


def launch(
    *program: str | Path, folder: Path, within: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(*within, sys.executable, "-I", "-S", launcher.__file__),
            *(str(OTHER.pw_uid), str(OTHER.pw_gid), str(folder)),
            *map(str, program),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def capabilities(done: subprocess.CompletedProcess[str]) -> set[int]:
    return {
        int(line.split()[1], 16) for line in done.stdout.splitlines() if "Cap" in line
    }


def test_a_program_behind_a_closed_folder_runs_with_one_capability(program):
    program.parent.chmod(0o700)
    done = launch(program, folder=program.parent)
    assert done.stdout.startswith(f"reaches itself\n{OTHER.pw_uid}\n")
    assert capabilities(done) == {1 << WEAKEST}
    assert program.parent.stat().st_mode & 0o777 == 0o700


def test_a_program_that_only_root_may_run_needs_the_stronger_one(program):
    program.chmod(0o700)
    program.parent.chmod(0o700)
    done = launch(program, folder=program.parent)
    assert f"{OTHER.pw_uid}\n" in done.stdout
    assert capabilities(done) == {1 << launcher.CAP_DAC_OVERRIDE}


def test_a_program_in_an_accessible_folder_gets_no_capability():
    done = launch("/bin/cat", "/proc/self/status", folder=Path("/"))
    status = dict(line.split(":\t", 1) for line in done.stdout.splitlines())
    assert status["CapEff"] == status["CapPrm"] == "0" * 16
    assert status["Uid"].split() == [str(OTHER.pw_uid)] * 4


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_root_without_capabilities_gets_advice(program):
    program.parent.chmod(0o700)
    without = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    done = launch(program, folder=program.parent, within=without)
    assert done.returncode == launcher.EXIT_UNREACHABLE
    assert "set DATABASE_URL" in done.stderr
