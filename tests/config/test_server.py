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

from config import server
from tests.support import web
from tests.support.waiting import PATIENCE_SECONDS, wait_until

PROCESS_ID = "tests.support.applications:process_id"


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_number_beyond_all_ports_is_refused(port):
    with pytest.raises(ValueError, match=f"there is no port {port}"):
        server.listen("127.0.0.1", port, 1)


def test_a_busy_port_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(server.PortInUse, match=f"127.0.0.1:{port} is in use"):
            server.listen("127.0.0.1", port, 1)
        with pytest.raises(server.PortInUse):
            server.listen("127.0.0.1", port, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_is_not_shared_even_before_anybody_listens(workers):
    listeners = server.listen("127.0.0.1", 0, workers)
    port = listeners[0].getsockname()[1]
    try:
        for count in (1, 2):
            with pytest.raises(server.PortInUse):
                server.listen("127.0.0.1", port, count)
    finally:
        for listener in listeners:
            listener.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_nobody_is_let_in_before_a_worker_can_answer(workers):
    listeners = server.listen("127.0.0.1", 0, workers)
    port = listeners[0].getsockname()[1]
    environ = {**os.environ, "OWN_PORT": str(port)}
    looking = "tests.support.applications:looking"
    with server.Server(listeners[:1], environ, application=looking) as running:
        assert int(web.get(running.base_url).text) == errno.ECONNREFUSED
    for listener in listeners:
        listener.close()


@pytest.mark.skipif(sys.platform != "linux", reason="claims are Linux's")
def test_a_port_is_free_again_when_its_sockets_are_closed():
    first = server.listen("127.0.0.1", 0, 2)
    port = first[0].getsockname()[1]
    for listener in first:
        listener.close()
    for listener in server.listen("127.0.0.1", port, 1):
        listener.close()


def test_connections_spread_over_the_workers():
    listeners = server.listen("127.0.0.1", 0, 2)
    with server.Server(listeners, application=PROCESS_ID) as running:
        answers = Counter(web.get(running.base_url).text for _ in range(40))
        assert set(answers) == {str(pid) for pid in running.pids}
        pids = running.pids
    assert not any(is_alive(pid) for pid in pids)
    with pytest.raises(httpx.ConnectError):
        web.get(running.base_url)


def test_a_worker_that_was_killed_is_replaced():
    listeners = server.listen("127.0.0.1", 0, 1)
    with server.Server(listeners, application=PROCESS_ID) as running:
        supervisor = threading.Thread(target=running.supervise, daemon=True)
        (first,) = running.pids
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not is_alive(first))
        supervisor.start()
        second = int(web.get(running.base_url).text)
        assert second != first
        running.leave()
        supervisor.join(timeout=PATIENCE_SECONDS)
        assert not supervisor.is_alive()


def test_a_worker_that_does_not_start_is_reported(capfd):
    listeners = server.listen("127.0.0.1", 0, 1)
    broken = "tests.support.applications:broken"
    with (
        pytest.raises(server.WorkerFailed),
        server.Server(listeners, application=broken),
    ):
        pass
    assert "no start today" in capfd.readouterr().err


def test_a_worker_that_never_serves_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(server, "START_PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(server, "GRACE_SECONDS", 0)
    listeners = server.listen("127.0.0.1", 0, 1)
    running = server.Server(
        listeners, application="tests.support.applications:hesitant"
    )
    with pytest.raises(server.WorkerFailed, match=r"did not serve within 0\.5 s"):
        running.__enter__()
    assert not any(is_alive(pid) for pid in running.pids)


def test_others_go_on_while_a_worker_can_not_be_replaced(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(server, "RETRY_SECONDS", 0.1)
    permission = tmp_path / "permission"
    permission.touch()
    environ = {**os.environ, "PERMISSION": str(permission)}
    application = "tests.support.applications:permitted"
    listeners = server.listen("127.0.0.1", 0, 2)
    with server.Server(listeners, environ, application) as running:
        first, second = running.pids
        permission.unlink()
        os.kill(first, signal.SIGKILL)
        supervisor = threading.Thread(target=running.supervise, daemon=True)
        supervisor.start()
        wait_until(lambda: caplog.text.count("no worker took over") >= 2)
        assert supervisor.is_alive()
        assert is_alive(second)
        permission.touch()
        wait_until(lambda: len(answering(running)) == 2)
        assert second in answering(running)
        running.leave()
        supervisor.join(timeout=PATIENCE_SECONDS)
        assert not supervisor.is_alive()


def answering(running):
    """Return the workers that serve."""
    serving = set()
    for _ in range(20):
        # Some connections wait for a worker that does not take them yet.
        with suppress(httpx.TimeoutException):
            serving.add(int(httpx.get(running.base_url, timeout=0.2).text))
    return serving


SUPERVISOR = """
from config import server
listeners = server.listen("127.0.0.1", 0, 2)
with server.Server(listeners, application="tests.support.applications:process_id") as s:
    print(s.base_url, *s.pids, flush=True)
    s.supervise()
"""


def test_workers_do_not_outlive_a_killed_supervisor():
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True
    ) as supervisor:
        url, *pids = supervisor.stdout.readline().split()
        assert web.get(url).text in pids
        supervisor.kill()
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids))


def test_workers_may_open_as_many_files_as_their_user():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        listeners = server.listen("127.0.0.1", 0, 1)
        application = "tests.support.applications:process_id"
        with server.Server(listeners, application=application) as running:
            limits = Path(f"/proc/{running.pids[0]}/limits")
            if not limits.exists():
                pytest.skip("limits are read from /proc")
            (line,) = [x for x in limits.read_text().splitlines() if "open files" in x]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert line.split()[3:5] == [str(hard)] * 2
