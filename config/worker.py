"""One server process: uvicorn on a socket that it was given.

Started by `config.server` as `python -m config.worker APPLICATION SOCKET READY`, the
last two being inherited descriptors: the listening socket, and a pipe that gets one
byte when requests are answered. Its standard input is the lifeline: it ends when the supervisor does, even
when that one was killed, and then the worker leaves too and the port is free again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import threading

import uvicorn

from config.protocol import KEEP_ALIVE_SECONDS, Protocol, hang_up_late
from config.websocket import MAX_FRAME_BYTES, PING_SECONDS, WebSocketProtocol

SWITCH_SECONDS = 0.0005
"""How long a thread, such as a page's, computes before the event loop has its turn. An
answer needs several turns; with Python's 5 ms, pages would make it wait for 20 ms."""

GRACE_SECONDS = 10
"""How long requests in flight may take once the server has been told to stop."""


class Worker(uvicorn.Server):
    """A uvicorn server that says when it is up."""

    def __init__(self, application: str, ready: int) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                loop="uvloop",
                http=Protocol,
                ws=WebSocketProtocol,
                ws_max_size=MAX_FRAME_BYTES,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PING_SECONDS,
                ws_per_message_deflate=False,  # 40 KB for each idle socket
                lifespan="on",
                access_log=False,  # a line per request would hold the API key
                log_config=None,  # the project's LOGGING, see config.settings
                log_level="warning",
                timeout_graceful_shutdown=GRACE_SECONDS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )
        self._ready = ready
        self._watch: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, then tell the supervisor."""
        await super().startup(sockets)
        if self.started:
            connections = self.server_state.connections
            self._watch = asyncio.create_task(hang_up_late(connections))
            # What is loaded by now stays for ever: no collection need look at it again.
            gc.collect()
            gc.freeze()
            os.write(self._ready, b"1")
        os.close(self._ready)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what has come, then leave."""
        if self._watch is not None:
            self._watch.cancel()
        await super().shutdown(sockets)


def _leave_with_supervisor() -> None:
    """Wait for the end of standard input, then stop as on SIGTERM."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(application: str, listener: int, ready: int) -> None:
    """Serve `package.module:name` until told to stop."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # The terminal sends Ctrl-C to everybody; the supervisor passes it on in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.Thread(target=_leave_with_supervisor, daemon=True).start()
    Worker(application, ready).run(sockets=[socket.socket(fileno=listener)])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
