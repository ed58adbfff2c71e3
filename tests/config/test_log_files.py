"""Logs of the embedded services, which only their user can read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.embedded import processes


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.fixture
def umask_of_a_careless_shell():
    before = os.umask(0)
    yield
    os.umask(before)


def write(log: Path) -> None:
    process = processes.start(["/bin/echo", "a query"], None, log.parent.parent, log)
    process.wait()
    processes.reap()


@pytest.mark.usefixtures("umask_of_a_careless_shell")
def test_new_folder_and_file_are_private(tmp_path):
    log = tmp_path / "var" / "log" / "postgres.log"
    (tmp_path / "var").mkdir()
    write(log)
    assert log.read_text() == "a query\n"
    assert (mode(log.parent), mode(log)) == ("0o700", "0o600")


@pytest.mark.usefixtures("umask_of_a_careless_shell")
def test_folder_and_files_of_an_earlier_version_become_private(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir(mode=0o755)
    for name in ("postgres.log", "postgres.log.1", "redis.log"):
        (folder / name).write_text("before\n")
    write(folder / "postgres.log")
    assert mode(folder) == "0o700"
    assert {mode(file) for file in folder.iterdir()} == {"0o600"}
    assert (folder / "postgres.log").read_text() == "before\na query\n"


def test_link_in_the_folder_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "other.log").symlink_to(outside)
    write(tmp_path / "log" / "redis.log")
    assert mode(outside) == "0o644"
