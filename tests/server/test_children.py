"""Child processes: restarts, stops, and their end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server import children as module
from server.children import Children, Started, kept_running, next_pause
from tests.support.alive import is_alive
from tests.support.waiting import wait_until

CHILD = """
import os, signal, sys, time
from server.lifeline import end_with_parent

folder, name, what = sys.argv[1:]
if what == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
end_with_parent(kill_seconds=0.5)
with open(f"{folder}/{name}", "a") as file:
    file.write(f"{os.getpid()} {time.monotonic()}\\n")
if what == "fail":
    sys.exit(3)
time.sleep(3600)
"""

PARENT = """
import subprocess, sys, time
from server.children import Children

folder, what = sys.argv[1:]
start = lambda name: subprocess.Popen(
    [sys.executable, "-c", sys.stdin.read(), folder, name, what], stdin=subprocess.PIPE
)
children = Children("child", start)
while True:
    children.keep({"only"})
    time.sleep(0.05)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder in which each child records its starts."""
    return tmp_path


def starts(folder: Path, name: str) -> list[tuple[int, float]]:
    """Return the process id and time of each start of a child."""
    path = folder / name
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    noted = [line.split() for line in lines if line.endswith("\n")]
    return [(int(pid), float(seconds)) for pid, seconds in noted]


def started(command: list[str]) -> Started:
    """Start a process whose standard input ends when it is no longer used."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    weakref.finalize(process, process.stdin.close)
    return process


@contextmanager
def made(folder: Path, what: str = "stay", **options: float) -> Iterator[Children]:
    """Yield children that record their starts, and stop them afterwards."""

    def start(name: str) -> Started:
        return started([sys.executable, "-c", CHILD, str(folder), name, what])

    children = Children("child", start, **options)
    try:
        yield children
    finally:
        children.stop()


def kept(children: Children, *names: str) -> bool:
    """Keep children running for one turn. Return True, for use in conditions."""
    children.keep(names)
    return True


def test_pauses_double_up_to_a_minute_and_begin_anew_after_a_stable_run():
    pauses = [0.0]
    for _ in range(8):
        pauses.append(next_pause(pauses[-1], 59.9))
    assert pauses[1:] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert next_pause(60, 60) == 1


def test_a_child_that_ends_is_started_again_after_growing_pauses(folder, caplog):
    with made(folder, "fail") as children:
        wait_until(
            lambda: kept(children, "one") and len(starts(folder, "one")) == 3,
        )
    (_, first), (_, second), (_, third) = starts(folder, "one")
    assert second - first >= 1
    assert third - second >= 2
    assert "child one ended (status 3), and is started again in 1 s" in caplog.text


def test_a_child_that_can_not_be_started_is_tried_again(folder, caplog, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.01)
    found = [str(folder / "nothing")]
    children = Children("child", lambda _: started(found))
    wait_until(lambda: kept(children, "one") and caplog.text.count("No such file") > 1)
    found[:] = [sys.executable, "-c", "import time; time.sleep(3600)"]
    wait_until(lambda: kept(children, "one") and children.pids)
    children.stop()
    assert children.pids == {}


def test_a_retry_does_not_wait_for_the_pause(folder, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 3600.0)
    with made(folder, "fail") as children:
        wait_until(lambda: kept(children, "one") and starts(folder, "one"))
        wait_until(lambda: kept(children, "one") and not children.pids)
        children.retry()
        wait_until(lambda: kept(children, "one") and len(starts(folder, "one")) == 2)


def test_children_come_and_go_with_their_names(folder):
    with made(folder) as children:
        wait_until(lambda: kept(children, "one", "two") and starts(folder, "two"))
        pids = children.pids
        assert set(pids) == {"one", "two"}
        wait_until(lambda: kept(children, "two") and not is_alive(pids["one"]))
        assert children.pids == {"two": pids["two"]}
        assert is_alive(pids["two"])


def test_a_killed_child_is_replaced_and_others_are_not(folder):
    with made(folder) as children:
        wait_until(lambda: kept(children, "one", "two") and len(children.pids) == 2)
        pids = children.pids
        os.kill(pids["one"], signal.SIGKILL)
        wait_until(
            lambda: (
                kept(children, "one", "two")
                and children.pids.get("one", pids["one"]) != pids["one"]
            )
        )
        assert children.pids["two"] == pids["two"]


def test_a_child_that_ignores_the_signal_is_killed(folder, caplog):
    with made(folder, "stubborn", stop_seconds=0.3) as children:
        wait_until(lambda: kept(children, "one") and starts(folder, "one"))
        ((pid, _),) = starts(folder, "one")
        # Until it is killed, no second process with its name is started.
        began = time.monotonic()
        children.keep([])
        wait_until(lambda: kept(children, "one") and len(starts(folder, "one")) == 2)
        assert not is_alive(pid)
        assert time.monotonic() - began >= 0.3
    assert "child one did not end and is killed" in caplog.text


def test_stopping_leaves_no_child_behind(folder):
    with made(folder, "stubborn", stop_seconds=0.2) as children:
        wait_until(lambda: kept(children, "one", "two") and len(children.pids) == 2)
        pids = children.pids.values()
        children.stop()
        assert not any(map(is_alive, pids))


@pytest.mark.parametrize("what", ["stay", "stubborn"])
def test_a_child_ends_with_its_parent_that_was_killed(folder, what):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder), what], stdin=subprocess.PIPE
    ) as parent:
        parent.stdin.write(CHILD.encode())
        parent.stdin.close()
        wait_until(lambda: starts(folder, "only"))
        ((pid, _),) = starts(folder, "only")
        assert is_alive(pid)
        parent.kill()
    wait_until(lambda: not is_alive(pid))


def test_a_thread_keeps_children_running_during_a_block(folder):
    with made(folder) as children:
        with kept_running(children, ["one"]):
            wait_until(lambda: starts(folder, "one"))
            os.kill(starts(folder, "one")[0][0], signal.SIGKILL)
            wait_until(lambda: len(starts(folder, "one")) == 2)
            pid = starts(folder, "one")[1][0]
            assert is_alive(pid)
        assert not is_alive(pid)
