"""The process that imports the application once and forks on request (`server.forking`).

It is started as `python -m server.fork_server SOCKET [MODULE]`. It runs no other thread,
opens no connection and builds nothing, so that forks have nothing to repair. It ends with
the process that started it; the forked processes watch their standard input.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from server import forking
from server.forking import ANSWER, LENGTH

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Blocked here. A forked process gets those that are sent to it as soon as it runs."""

MAX_DESCRIPTORS = 64


class ForkServer:
    """Forks a process when its starter, or a process that it has forked, requests it.

    connected: the connection of the process that started it.
    module: the name of the module that was imported, or None.
    """

    def __init__(self, connected: socket.socket, module: str | None) -> None:
        self._starter = connected
        self._module = module
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self._clients = {connected.fileno(): connected}
        self._statuses: dict[int, int] = {}
        """Descriptors of the pipes for exit statuses, by process id."""
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> Callable[[], object] | None:
        """Answer requests until the starter ends. A fork returns the function to call."""
        while self._starter.fileno() in self._clients:
            poll = select.poll()
            for descriptor in (self._woken.fileno(), *self._clients):
                poll.register(descriptor, select.POLLIN)
            for descriptor, _ in poll.poll():
                if descriptor == self._woken.fileno():
                    self._reap()
                    continue
                call = self._answer(self._clients[descriptor])
                if call is not None:
                    return call
        return None

    def _reap(self) -> None:
        """Report the exit statuses of processes that have ended."""
        with suppress(BlockingIOError):
            self._woken.recv(4096)
        while self._statuses:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            pipe = self._statuses.pop(pid)
            with suppress(BrokenPipeError):
                os.write(pipe, ANSWER.pack(os.waitstatus_to_exitcode(status)))
            os.close(pipe)

    def _answer(self, client: socket.socket) -> Callable[[], object] | None:
        """Fork as a client requests. The forked process returns the function to call."""
        descriptors: list[int] = []
        try:
            head, descriptors, _, _ = socket.recv_fds(
                client, LENGTH.size, MAX_DESCRIPTORS
            )
            (length,) = LENGTH.unpack(head)
            request = client.recv(length, socket.MSG_WAITALL)
            asked = json.loads(request)
        except (OSError, ValueError, struct.error):  # the client has ended
            self._clients.pop(client.fileno()).close()
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        ours, theirs = socket.socketpair()
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 0)
        if pid == 0:
            ours.close()
            return self._forked(asked, theirs, descriptors)
        theirs.close()
        status, *rest = descriptors
        for descriptor in rest if pid > 0 else descriptors:
            os.close(descriptor)
        if pid > 0:
            self._statuses[pid] = status
            self._clients[ours.fileno()] = ours
        else:
            ours.close()
        with suppress(OSError):  # the client has ended
            client.sendall(ANSWER.pack(pid))
        return None

    def _forked(
        self, asked: dict[str, Any], connected: socket.socket, descriptors: list[int]
    ) -> Callable[[], object]:
        """Set up a forked process for its client, and return the function to call.

        The process inherits the pipe for its exit status, which stays open until both
        this process and the fork server have closed it.
        """
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for opened in (*self._clients.values(), self._wake, self._woken):
            opened.close()
        for pipe in self._statuses.values():
            os.close(pipe)
        forking.shared.join(self._module, connected, os.getppid())
        _, *streams = descriptors[:4]
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        if asked["has_own_group"]:
            os.setpgid(0, 0)
        with suppress(OSError):  # other systems than Linux
            Path("/proc/self/comm").write_text(asked["title"])
        os.environ.clear()
        os.environ.update(asked["environ"])
        gc.enable()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        after_fork = getattr(sys.modules.get(self._module or ""), "after_fork", None)
        module, _, name = asked["call"].partition(":")

        def call() -> object:
            if after_fork is not None:
                after_fork()
            function = getattr(importlib.import_module(module), name)
            return function(*asked["arguments"], *descriptors[4:])

        return call


def main(descriptor: int, module: str | None = None) -> None:
    """Import a module and answer requests. A fork calls the requested function."""
    ending = _Ending()
    atexit.register(ending)  # the first handler, which is called last
    gc.disable()  # until all modules are loaded, to avoid 300 useless collections
    server = ForkServer(socket.socket(fileno=descriptor), module)
    if module is not None:
        importlib.import_module(module)
    others = set(threading.enumerate()) - {threading.main_thread()}
    if others:
        raise RuntimeError(f"{module} has started threads: {others}")
    gc.collect()
    gc.freeze()  # a collection would write to the pages that all processes share
    call = server.serve()
    if call is not None:
        ending.status = _status_of(call)


class _Ending:
    """Ends a forked process after Python has waited for threads and run exit handlers.

    Python would then free each object of all modules. This takes 0.1 s, and copies the
    pages that all processes share.
    """

    status: int | None = None
    """None in the fork server, and if Python has an error to print."""

    def __call__(self) -> None:
        if self.status is not None:
            for stream in (sys.stdout, sys.stderr):
                with suppress(
                    OSError, ValueError
                ):  # its reader has gone, or it is closed
                    stream.flush()
            os._exit(self.status)


def _status_of(call: Callable[[], object]) -> int:
    """Call a function, and return the exit status. Raises: SystemExit with a message."""
    try:
        call()
    except SystemExit as error:
        if not isinstance(error.code, int | None):
            raise
        return error.code or 0
    return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
