"""The process from which the processes of the service are forked."""

from __future__ import annotations

import json
import os
from pathlib import Path

from server import forking
from tests.support.waiting import PATIENCE_SECONDS


def test_nothing_runs_and_nothing_is_connected_before_a_fork() -> None:
    """Threads and connections would not work in a forked process."""
    forking.shared.start("tests.support.forked:end", 0).wait(PATIENCE_SECONDS)
    own = Path(f"/proc/{forking.shared.pid}")
    # Including threads of libraries written in C.
    assert len(list((own / "task").iterdir())) == 1
    opened = [os.readlink(descriptor) for descriptor in (own / "fd").iterdir()]
    # The connection to the starter, and the socket pair for SIGCHLD. Other connections are
    # those of processes that run.
    started = len(forked_processes())
    assert sum(name.startswith("socket") for name in opened) == 3 + started
    assert not [name for name in opened if "eventpoll" in name]


def forked_processes() -> list[str]:
    return (
        Path(f"/proc/{forking.shared.pid}/task/{forking.shared.pid}/children")
        .read_text()
        .split()
    )


def test_a_web_process_imports_only_the_module_that_builds_it() -> None:
    """Each further import would cost every process, and every server of a test."""
    read, write = os.pipe()
    with os.fdopen(read) as file:
        forked = forking.shared.start(
            "tests.support.forked:build_application", descriptors=[write]
        )
        os.close(write)
        assert json.load(file) == ["config.asgi"]
    assert forked.wait(PATIENCE_SECONDS) == 0


def test_a_forked_process_has_the_settings_of_its_own_environment() -> None:
    read, write = os.pipe()
    environ = {
        **os.environ,
        "NODEAPI_MAX_LOGS": "1234",
        "DATABASE_URL": "postgresql://me@/elsewhere?host=/nowhere",
        "LOG_LEVEL": "CRITICAL",
    }
    with os.fdopen(read) as file:
        forked = forking.shared.start(
            "tests.support.forked:read_settings",
            "NODEAPI_MAX_LOGS",
            descriptors=[write],
            environ=environ,
        )
        os.close(write)
        assert json.load(file) == [1234, "elsewhere", 50]
    assert forked.wait(PATIENCE_SECONDS) == 0


def test_a_forked_process_can_not_have_other_apps(capfd) -> None:
    forked = forking.shared.start(
        "tests.support.forked:end",
        0,
        environ={**os.environ, "STAFF_SECOND_FACTOR": "on"},
    )
    assert forked.wait(PATIENCE_SECONDS) == 1
    assert "INSTALLED_APPS differ" in capfd.readouterr().err
