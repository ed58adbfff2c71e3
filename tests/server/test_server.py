from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from server import supervisor
from server.bounds import Limits
from server.heartbeat import TurnClock
from server.worker import compare_open_files
from tests.support import web
from tests.support.alive import is_alive, state
from tests.support.waiting import PATIENCE_SECONDS, wait_until

PROCESS_ID = "tests.support.applications:process_id"


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_number_beyond_all_ports_is_refused(port):
    with pytest.raises(ValueError, match=f"invalid port {port}"):
        supervisor.listen("127.0.0.1", port, 1)


def test_a_busy_port_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(supervisor.PortInUse, match=f"127.0.0.1:{port} is in use"):
            supervisor.listen("127.0.0.1", port, 1)
        with pytest.raises(supervisor.PortInUse):
            supervisor.listen("127.0.0.1", port, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_is_not_shared_even_before_anybody_listens(workers):
    listeners = supervisor.listen("127.0.0.1", 0, workers)
    port = listeners[0].getsockname()[1]
    try:
        for count in (1, 2):
            with pytest.raises(supervisor.PortInUse):
                supervisor.listen("127.0.0.1", port, count)
    finally:
        for listener in listeners:
            listener.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_connections_are_refused_until_a_worker_can_answer(workers):
    listeners = supervisor.listen("127.0.0.1", 0, workers)
    port = listeners[0].getsockname()[1]
    environ = {**os.environ, "OWN_PORT": str(port)}
    looking = "tests.support.applications:looking"
    with supervisor.Server(listeners[:1], environ, application=looking) as running:
        assert int(web.get(running.base_url).text) == errno.ECONNREFUSED
    for listener in listeners:
        listener.close()


@pytest.mark.skipif(sys.platform != "linux", reason="claims are Linux's")
def test_a_port_is_free_again_when_its_sockets_are_closed():
    first = supervisor.listen("127.0.0.1", 0, 2)
    port = first[0].getsockname()[1]
    for listener in first:
        listener.close()
    for listener in supervisor.listen("127.0.0.1", port, 1):
        listener.close()


def test_connections_spread_over_the_workers():
    listeners = supervisor.listen("127.0.0.1", 0, 2)
    with supervisor.Server(listeners, application=PROCESS_ID) as running:
        answers = Counter(web.get(running.base_url).text for _ in range(40))
        assert set(answers) == {str(pid) for pid in running.pids}
        pids = running.pids
    assert not any(is_alive(pid) for pid in pids)
    with pytest.raises(httpx.ConnectError):
        web.get(running.base_url)


def test_a_worker_that_was_killed_is_replaced():
    listeners = supervisor.listen("127.0.0.1", 0, 1)
    with supervisor.Server(listeners, application=PROCESS_ID) as running:
        supervising = threading.Thread(target=running.supervise, daemon=True)
        (first,) = running.pids
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not is_alive(first))
        supervising.start()
        second = int(web.get(running.base_url).text)
        assert second != first
        running.leave()
        supervising.join(timeout=PATIENCE_SECONDS)
        assert not supervising.is_alive()


def stop(running, pid):
    os.kill(pid, signal.SIGSTOP)


def loop(running, pid):
    """Send a request that makes a worker loop forever."""
    with suppress(httpx.TimeoutException):
        web.get(f"{running.base_url}/loop", timeout=0.5)


@pytest.mark.parametrize("hang", [stop, loop])
def test_a_worker_that_hangs_is_replaced_and_the_other_one_is_not(hang, caplog):
    """The new worker is not replaced either, although its start takes longer than the limit."""
    listeners = supervisor.listen("127.0.0.1", 0, 2)
    application = "tests.support.applications:looping"
    with supervisor.Server(
        listeners, application=application, hang_seconds=2
    ) as running:
        before = set(running.pids)
        supervising = threading.Thread(target=running.supervise, daemon=True)
        supervising.start()
        hang(running, running.pids[0])
        wait_until(lambda: len(answering(running) - before) == 1)
        assert len(set(running.pids) & before) == 1
        assert set(running.pids) == wait_until(lambda: answering_both(running))
        (killed,) = before - set(running.pids)
        assert not is_alive(killed)
        assert caplog.text.count("another takes over") == 1
        assert f"worker {killed} hangs: no heartbeat for 2" in caplog.text
        running.leave()
        supervising.join(timeout=PATIENCE_SECONDS)


def answering_both(running):
    found = answering(running)
    return found if len(found) == 2 else None


def test_a_worker_that_may_be_silent_for_ever_is_left_alone(monkeypatch):
    turns = []

    class Counted(TurnClock):
        def turn(self):
            turns.append(self)
            return super().turn()

    monkeypatch.setattr(supervisor, "TurnClock", Counted)
    listeners = supervisor.listen("127.0.0.1", 0, 1)
    with supervisor.Server(
        listeners, application=PROCESS_ID, hang_seconds=0
    ) as running:
        (pid,) = running.pids
        supervising = threading.Thread(target=running.supervise, daemon=True)
        supervising.start()
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: state(pid) == "T")
        stopped = len(turns)
        wait_until(lambda: len(turns) > stopped + 10)
        os.kill(pid, signal.SIGCONT)
        assert web.get(running.base_url).text == str(pid)
        running.leave()
        supervising.join(timeout=PATIENCE_SECONDS)


RESUMED_AFTER_AN_HOUR = """
import os, signal, time
from server import heartbeat, supervisor
slept_seconds = 0

def resume(*_):
    global slept_seconds
    slept_seconds += 3600
    os.write(1, b"resumed\\n")

class Reported(heartbeat.TurnClock):
    def __init__(self):
        super().__init__(lambda: time.monotonic() + slept_seconds)

    def turn(self):
        passed_seconds = super().turn()
        os.write(1, b"turn\\n")
        return passed_seconds

signal.signal(signal.SIGCONT, resume)
supervisor.TurnClock = Reported
"""
"""Advances a supervisor's clock by an hour while it is stopped. The supervisor then prints
a line when it resumes and at each of its turns."""


def test_a_supervisor_that_was_stopped_with_its_workers_kills_none():
    """A suspended machine behaves like this. Its processes do not resume simultaneously."""
    program = RESUMED_AFTER_AN_HOUR + SUPERVISOR
    hang_seconds = "60"  # longer than the test takes, shorter than an hour
    with subprocess.Popen(
        [sys.executable, "-c", program, hang_seconds],
        stdout=subprocess.PIPE,
        text=True,
    ) as supervisor:

        def wait_for_lines(word, count):
            while count:
                line = supervisor.stdout.readline()
                assert line, "the supervisor has ended"
                count -= line == f"{word}\n"

        try:
            line = supervisor.stdout.readline()
            while not line.startswith("http"):
                line = supervisor.stdout.readline()
            url, *pids = line.split()
            workers = [int(pid) for pid in pids]
            for pid in (supervisor.pid, *workers):
                os.kill(pid, signal.SIGSTOP)
            for pid in (supervisor.pid, *workers):
                wait_until(lambda pid=pid: state(pid) == "T")
            os.kill(supervisor.pid, signal.SIGCONT)
            wait_for_lines("resumed", 1)
            for pid in workers:  # the supervisor has run before the workers
                wait_for_lines("turn", 3)
                os.kill(pid, signal.SIGCONT)
            assert web.get(url).text in pids
            wait_for_lines("turn", 3)
            assert all(is_alive(pid) for pid in workers)
        finally:
            supervisor.kill()


def test_a_worker_that_does_not_start_is_reported(capfd):
    listeners = supervisor.listen("127.0.0.1", 0, 1)
    broken = "tests.support.applications:broken"
    with (
        pytest.raises(supervisor.WorkerFailed),
        supervisor.Server(listeners, application=broken),
    ):
        pass
    assert "no start today" in capfd.readouterr().err


def test_a_worker_that_never_serves_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(supervisor, "START_PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(supervisor, "GRACE_SECONDS", 0)
    listeners = supervisor.listen("127.0.0.1", 0, 1)
    running = supervisor.Server(
        listeners, application="tests.support.applications:hesitant"
    )
    with pytest.raises(supervisor.WorkerFailed, match=r"did not serve within 0\.5 s"):
        running.__enter__()
    assert not any(is_alive(pid) for pid in running.pids)


def test_others_go_on_while_a_worker_can_not_be_replaced(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(supervisor, "RETRY_SECONDS", 0.1)
    permission = tmp_path / "permission"
    permission.touch()
    environ = {**os.environ, "PERMISSION": str(permission)}
    application = "tests.support.applications:permitted"
    listeners = supervisor.listen("127.0.0.1", 0, 2)
    with supervisor.Server(listeners, environ, application) as running:
        first, second = running.pids
        permission.unlink()
        os.kill(first, signal.SIGKILL)
        supervising = threading.Thread(target=running.supervise, daemon=True)
        supervising.start()
        wait_until(lambda: caplog.text.count("no worker took over") >= 2)
        assert supervising.is_alive()
        assert is_alive(second)
        permission.touch()
        wait_until(lambda: len(answering(running)) == 2)
        assert second in answering(running)
        running.leave()
        supervising.join(timeout=PATIENCE_SECONDS)
        assert not supervising.is_alive()


def answering(running):
    """Return the workers that serve."""
    serving = set()
    for _ in range(20):
        # Some connections wait for a worker that does not take them yet.
        with suppress(httpx.TimeoutException):
            serving.add(int(web.get(running.base_url, timeout=0.2).text))
    return serving


SUPERVISOR = """
import sys
from server import supervisor
listeners = supervisor.listen("127.0.0.1", 0, 2)
application = "tests.support.applications:process_id"
hang_seconds = float(sys.argv[1])
with supervisor.Server(listeners, application=application, hang_seconds=hang_seconds) as s:
    print(s.base_url, *s.pids, flush=True)
    s.supervise()
"""


def test_workers_do_not_outlive_a_killed_supervisor():
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, "5"], stdout=subprocess.PIPE, text=True
    ) as supervisor:
        url, *pids = supervisor.stdout.readline().split()
        assert web.get(url).text in pids
        supervisor.kill()
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids))


def test_workers_may_open_as_many_files_as_their_user():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        listeners = supervisor.listen("127.0.0.1", 0, 1)
        application = "tests.support.applications:process_id"
        with supervisor.Server(listeners, application=application) as running:
            limits = Path(f"/proc/{running.pids[0]}/limits")
            if not limits.exists():
                pytest.skip("limits are read from /proc")
            (line,) = [x for x in limits.read_text().splitlines() if "open files" in x]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert line.split()[3:5] == [str(hard)] * 2


def test_limit_of_connections_beyond_the_open_files_is_reported(caplog):
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    compare_open_files(Limits(per_key=1, per_address=1))
    assert not caplog.records
    compare_open_files(Limits(per_key=1, per_address=allowed))
    (record,) = caplog.records
    assert f"may have {allowed} connections" in record.getMessage()
