"""`manage.py` as the shell sees it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", ["list_networks", "serve"])
def test_a_database_that_does_not_answer_is_one_line(command, tmp_path):
    environ = {
        **os.environ,
        "VAR_DIR": str(tmp_path),
        "PORT": "0",
        "DATABASE_URL": f"postgres://u:secret@/x?host={tmp_path}",
        "REDIS_URL": f"unix://{tmp_path}/redis.sock",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", command],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("manage.py: the database failed: connection ")
    assert len(done.stderr.splitlines()) == 1
    assert "secret" not in done.stderr
