"""Management commands in processes that were forked, and have imported everything already.

A new Python takes seconds of processor time for its imports. Tests of the start itself run
`manage.py` in one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from server import forking
from server.forking import Forked, ForkServer
from tests.support.alive import children
from tests.support.waiting import PATIENCE_SECONDS

MAIN = "manage:main"


def run(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    forks: ForkServer = forking.shared,
) -> subprocess.CompletedProcess[str]:
    """Run a management command to its end.

    environ: additions to the environment.
    forks: a fork server with the settings' apps.
    """
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        process = forks.start(
            MAIN,
            *arguments,
            output=output.fileno(),
            errors=errors.fileno(),
            environ={**os.environ, **(environ or {})},
        )
        status = process.wait(PATIENCE_SECONDS)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(
            arguments, status, output.read(), errors.read()
        )


def checked(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    forks: ForkServer = forking.shared,
) -> str:
    """Run a management command, which must succeed. Return its output."""
    done = run(*arguments, environ=environ, forks=forks)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(
    *arguments: str,
    output: Path,
    errors: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Forked:
    """Start a management command that writes to files.

    output, errors: are emptied. errors: None for the same file.
    environ: additions to the environment.
    """
    with output.open("w") as stdout, (errors or output).open("w") as stderr:
        return forking.shared.start(
            MAIN,
            *arguments,
            output=stdout.fileno(),
            errors=stderr.fileno(),
            environ={**os.environ, **(environ or {})},
        )


def descendants(text: str) -> set[int]:
    """Return the processes of `start`, and those that they forked, with a text in their names.

    All are children of the fork server.
    """
    assert forking.shared.pid
    return children(forking.shared.pid, text)
