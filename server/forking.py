"""Starts processes by forking one that has imported the application already.

The fork server (`server.fork_server`) is a process with a single thread, which imports the
application once and forks on request. A forked process has the environment, descriptors
and standard streams of the process that asked for it, and can ask for processes itself.
It costs milliseconds, where an import costs seconds, and shares the memory of the code.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent

LENGTH = struct.Struct(">I")
"""Prefix of a request, which is a JSON document. It carries the descriptors: the pipes for
the exit status and for standard input, standard output, standard error, and those that
the call gets."""

ANSWER = struct.Struct(">i")
"""The process id; a negative error number if the fork failed. Also the exit status."""

UNKNOWN_STATUS = 255
"""Exit status of a process that has outlived its fork server."""


class Forked:
    """A forked process. The members are those of `subprocess.Popen`.

    Its standard input is a pipe to which nothing is written. It ends with this process, or
    when this object is no longer used.
    """

    def __init__(self, pid: int, status: int, stdin: int) -> None:
        """status: descriptor of the pipe from which the exit status is read."""
        self.pid = pid
        self.returncode: int | None = None
        self._status = status
        self._lock = threading.Lock()
        for descriptor in (status, stdin):
            weakref.finalize(self, os.close, descriptor)

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None if the process runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status when the process has ended.

        timeout: seconds; None for no limit. Raises: subprocess.TimeoutExpired.
        """
        status = self._look(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            # The process may end between these two lines.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM, unless the process has ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._status, select.POLLIN)
            if poll.poll(None if timeout is None else 1000 * timeout):
                self._read()
        return self.returncode

    def _read(self) -> None:
        with self._lock:  # several threads may wait
            if self.returncode is None:
                status = os.read(self._status, ANSWER.size)
                self.returncode = ANSWER.unpack(status)[0] if status else UNKNOWN_STATUS


class ForkServer:
    """The fork server of this process, or another one. Its methods may be called by threads.

    module: the module to import. `after_fork`, if the module has that function, is called in
        each forked process, in its environment. If None, only this package is imported.
    environ: the environment of the import; None for that of this process.
    """

    def __init__(
        self, module: str | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self.module = module
        self._environ = environ
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.pid: int | None = None
        """The process id of the fork server, if it runs."""

    def join(self, module: str | None, connected: socket.socket, pid: int) -> None:
        """Use a fork server that runs, such as the one that forked this process."""
        self.module, self._socket, self.pid = module, connected, pid

    def open(self) -> None:
        """Start the fork server, if it does not run. Does not wait for its imports."""
        with self._lock:
            self._connected()

    def close(self) -> None:
        """End the fork server. The forked processes go on."""
        with self._lock:
            self._close()

    def start(
        self,
        call: str,
        *arguments: str | float,
        descriptors: Sequence[int] = (),
        environ: Mapping[str, str] | None = None,
        title: str = "",
        has_own_group: bool = False,
        output: int = 1,
        errors: int = 2,
    ) -> Forked:
        """Start a process.

        call: `module:function`, called with the arguments and with the numbers that the
            descriptors have in the process.
        environ: the environment of the new process; None for that of this one.
        title: name of the process in `ps` (Linux); its first 15 bytes are shown.
        has_own_group: whether Ctrl-C in a terminal does not reach the process.
        output, errors: descriptors of its standard output and standard error.

        Raises: OSError.
        """
        request = {
            "call": call,
            "arguments": arguments,
            "environ": dict(os.environ if environ is None else environ),
            "title": title or call,
            "has_own_group": has_own_group,
        }
        status, their_status = os.pipe()
        their_stdin, stdin = os.pipe()
        passed = [their_status, their_stdin, output, errors, *descriptors]
        try:
            pid = self._ask(json.dumps(request).encode(), passed)
        except BaseException:
            os.close(status)
            os.close(stdin)
            raise
        finally:
            os.close(their_status)
            os.close(their_stdin)
        return Forked(pid, status, stdin)

    def _ask(self, request: bytes, descriptors: Sequence[int]) -> int:
        """Return the id of a new process. A fork server that has died is replaced."""
        with self._lock:
            was_running = self._socket is not None
            answer = self._exchange(request, descriptors)
            if not answer and was_running:
                answer = self._exchange(request, descriptors)
        if not answer:
            raise ChildProcessError("the application could not be imported")
        (pid,) = ANSWER.unpack(answer)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return int(pid)

    def _exchange(self, request: bytes, descriptors: Sequence[int]) -> bytes:
        """Return the answer to a request, or b"" if the fork server has ended."""
        connected = self._connected()
        try:
            socket.send_fds(connected, [LENGTH.pack(len(request))], descriptors)
            connected.sendall(request)
            answer = connected.recv(ANSWER.size, socket.MSG_WAITALL)
        except ConnectionError:
            answer = b""
        # A signal handler may raise. The next request would then read this answer.
        except BaseException:
            self._close()
            raise
        if not answer:
            self._close()
        return answer

    def _connected(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair()
            command = [sys.executable, "-m", "server.fork_server", str(theirs.fileno())]
            with theirs:
                self._process = subprocess.Popen(
                    [*command, *([self.module] if self.module else [])],
                    cwd=PROJECT,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            self._socket, self.pid = ours, self._process.pid
            atexit.register(self.close)
        return self._socket

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = self.pid = None
        if self._process is not None:
            self._process.kill()  # it may still be importing
            self._process.wait()
            self._process = None


shared = ForkServer()
"""The fork server of this process: the one from which it was forked, or its own."""
