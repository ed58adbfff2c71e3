"""Processes that are forked from one that has imported its modules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.forking import UNKNOWN_STATUS, Forked, ForkServer
from tests.support import alive
from tests.support.waiting import PATIENCE_SECONDS, wait_until

CALLS = "tests.support.forked"


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    server = ForkServer(CALLS)
    yield server
    server.close()


def told(forks: ForkServer, call: str, *arguments: str, **options: Any) -> Any:
    """Return the output of a forked process."""
    read, write = os.pipe()
    with os.fdopen(read) as file:
        call = f"{CALLS}:{call}"
        forked = forks.start(call, *arguments, descriptors=[write], **options)
        os.close(write)
        text = file.read()
    assert forked.wait(PATIENCE_SECONDS) == 0
    return json.loads(text)


def test_a_process_has_what_it_was_given_and_nothing_of_others(
    forks: ForkServer,
) -> None:
    others = [forks.start(f"{CALLS}:sleep") for _ in range(3)]
    try:
        environ = {"GIVEN": "value"}
        found = told(
            forks,
            "describe",
            "GIVEN",
            environ=environ,
            title="a" * 20,
            has_own_group=True,
        )
    finally:
        for other in others:
            other.kill()
    assert found["environ"] == environ
    assert found["blocked"] == []
    assert found["group"]
    assert found["title"] == "a" * 15
    # Standard input, the status, the given descriptor; and the fork server's socket.
    assert found["opened"].count("pipe") - pipes_of_streams() == 3
    assert found["opened"].count("socket") == 1
    assert not told(forks, "describe", "GIVEN")["environ"]["GIVEN"]


def pipes_of_streams() -> int:
    return sum(os.readlink(f"/proc/self/fd/{n}").startswith("pipe") for n in (1, 2))


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_known(forks: ForkServer, status: int) -> None:
    forked = forks.start(f"{CALLS}:end", status)
    assert forked.wait(PATIENCE_SECONDS) == status
    assert forked.poll() == status
    forked.kill()  # nobody


def test_an_error_is_shown_and_a_status_of_one(
    forks: ForkServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert forks.start(f"{CALLS}:fail").wait(PATIENCE_SECONDS) == 1
    assert "RuntimeError: no luck today" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("message", "status", "shown"),
    [("no message", 0, ""), ("a message", 1, "a message\n")],
)
def test_a_process_ends_after_its_threads_and_exit_handlers(
    forks: ForkServer, tmp_path: Path, message: str, status: int, shown: str
) -> None:
    output, errors = tmp_path / "output", tmp_path / "errors"
    with output.open("w") as stdout, errors.open("w") as stderr:
        forked = forks.start(
            f"{CALLS}:end_late",
            message,
            output=stdout.fileno(),
            errors=stderr.fileno(),
        )
    assert forked.wait(PATIENCE_SECONDS) == status
    assert output.read_text() == f"thread {message}\nexit handler {message}\n"
    assert errors.read_text() == shown


def test_a_signal_is_a_negative_status(forks: ForkServer) -> None:
    forked = forks.start(f"{CALLS}:sleep")
    assert forked.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        forked.wait(0.01)
    forked.terminate()  # even before it runs
    assert forked.wait(PATIENCE_SECONDS) == -signal.SIGTERM
    assert not Path(f"/proc/{forked.pid}").exists()


def test_a_forked_process_forks_from_the_same_server(forks: ForkServer) -> None:
    parent, pid, status = told(forks, "fork")
    assert pid != parent == forks.pid
    assert status == 7


def test_a_fork_server_that_was_killed_is_replaced(forks: ForkServer) -> None:
    orphan = forks.start(f"{CALLS}:sleep")
    first = forks.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert forks.start(f"{CALLS}:end", 5).wait(PATIENCE_SECONDS) == 5
    assert forks.pid != first
    assert orphan.poll() is None
    orphan.kill()
    assert orphan.wait(PATIENCE_SECONDS) == UNKNOWN_STATUS


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("tests.support.missing", "No module named 'tests.support.missing'"),
        ("tests.support.threading_module", "has started threads"),
    ],
)
def test_modules_that_can_not_be_forked_are_refused(
    module: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server = ForkServer(module)
    with pytest.raises(ChildProcessError, match="could not be imported"):
        server.start(f"{CALLS}:end", 0)
    assert reason in capfd.readouterr().err
    server.close()


STARTER = """
import sys, time
from server.forking import ForkServer
server = ForkServer("tests.support.forked")
server.start("tests.support.forked:end", 0).wait()
print(server.pid, flush=True)
time.sleep(3600)
"""


def test_the_fork_server_ends_with_the_process_that_started_it() -> None:
    command = [sys.executable, "-c", STARTER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert alive.is_alive(pid)
        os.kill(pid, signal.SIGTERM)  # Ctrl-C and systemd send it to all processes
        os.kill(pid, signal.SIGINT)
        assert alive.is_alive(pid)
        starter.kill()
    wait_until(lambda: not alive.is_alive(pid))


def test_a_process_that_nobody_holds_ends_its_standard_input(forks: ForkServer) -> None:
    forked: Forked | None = forks.start("tests.support.forked:until_alone")
    assert forked is not None
    pid = forked.pid
    assert forked.poll() is None
    del forked
    wait_until(lambda: not alive.is_alive(pid))


def test_a_signal_may_come_too_late() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    status, to_status = os.pipe()
    from_stdin, stdin = os.pipe()
    Forked(ended.pid, status, stdin).kill()  # its status was not written yet
    os.close(to_status)
    os.close(from_stdin)
