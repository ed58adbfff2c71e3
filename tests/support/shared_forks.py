"""The fork servers of all test processes, which share one import of the application.

The process that runs the test processes imports it once, and forks a fork server for each.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from threading import Thread

from server import fork_server, forking
from server.forking import Forked, ForkServer

MODULE = "tests.support.preload"

_PID = struct.Struct("i")


def offer(address: Path) -> ForkServer:
    """Import the application, and answer each connection with a fork server's process id."""
    forks = ForkServer(MODULE)
    forks.open()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen()
    Thread(target=_answer, args=(listener, forks), daemon=True).start()
    return forks


def _answer(listener: socket.socket, forks: ForkServer) -> None:
    running: list[Forked] = []
    while True:
        connected, _ = listener.accept()
        with connected:
            call = f"{__name__}:serve"
            running.append(forks.start(call, descriptors=[connected.fileno()]))
            connected.sendall(_PID.pack(running[-1].pid))


def serve(descriptor: int) -> None:
    """Fork processes for the other end of a connection."""
    forking.shared.close()  # this process asks for no more processes
    fork_server.main(descriptor, MODULE)


def use(address: Path) -> None:
    """Let this process's shared fork server be one that another process offers."""
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(str(address))
    (pid,) = _PID.unpack(connected.recv(_PID.size, socket.MSG_WAITALL))
    forking.shared.join(MODULE, connected, pid)
