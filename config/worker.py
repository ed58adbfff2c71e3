"""One server process: uvicorn on a socket that it was given.

Started by `config.server` as `python -m config.worker APPLICATION DRAIN READY SOCKET …`:
for how many seconds it goes on after the word to stop, and inherited descriptors. READY
is a pipe that gets one byte when requests are answered, the others are sockets to listen
on from then on; a second one is for operators. Its standard input is the lifeline: it
ends when the supervisor does, even when that one was killed, and then the worker leaves
too and the port is free again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
import threading
from contextlib import suppress
from types import FrameType

import uvicorn

from config import env
from config.forwarded import Forwarded
from config.known_heads import KnownHeads
from config.logs import catch_everything
from config.protocol import KEEP_ALIVE_SECONDS, Protocol, hang_up_late
from config.running import STATE, Running
from config.websocket import MAX_FRAME_BYTES, PING_SECONDS, WebSocketProtocol

SWITCH_SECONDS = 0.0005
"""How long a thread, such as a page's, computes before the event loop has its turn. An
answer needs several turns; with Python's 5 ms, pages would make it wait for 20 ms."""

BACKLOG = 2048
"""Connections the kernel keeps while a worker is busy."""

GRACE_SECONDS = 10
"""How long requests in flight may take once the server has been told to stop."""


class Config(uvicorn.Config):
    """uvicorn's settings; its application may answer as it is called."""

    def load(self) -> None:
        """Load the application, and put what it needs around it."""
        super().load()
        proxies = env.text("FORWARDED_ALLOW_IPS", "127.0.0.1")
        self.loaded_app = application = Forwarded(self.loaded_app, proxies)
        recognise = application.recognise
        self.known_heads = None if recognise is None else KnownHeads(recognise)


class Worker(uvicorn.Server):
    """A uvicorn server that says when it is up, and when it is about to leave.

    ready: descriptor of the pipe for the first.
    drain_seconds: how long it still takes requests after SIGTERM, while `/readyz` tells
        load balancers to send them elsewhere and each answer closes its connection.
    inner_port: where operators ask, 0 for nowhere.
    """

    def __init__(
        self,
        application: str,
        ready: int,
        drain_seconds: float = 0,
        inner_port: int = 0,
    ) -> None:
        super().__init__(
            Config(
                application,
                loop="uvloop",
                http=Protocol,
                ws=WebSocketProtocol,
                ws_max_size=MAX_FRAME_BYTES,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PING_SECONDS,
                proxy_headers=False,  # see `Forwarded`
                ws_per_message_deflate=False,  # 40 KB for each idle socket
                lifespan="on",
                backlog=BACKLOG,
                access_log=False,  # a line per request would hold the API key
                log_config=None,  # the project's LOGGING, see config.settings
                log_level="warning",
                timeout_graceful_shutdown=GRACE_SECONDS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )
        self._ready = ready
        self._drain_seconds = drain_seconds
        self._leaves_at: float | None = None
        self._watch: asyncio.Task[None] | None = None
        state = self.server_state
        self._running = Running(state.connections, state.tasks, inner_port)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, then tell the supervisor."""
        self.lifespan.state[STATE] = self._running
        await super().startup(sockets)
        if self.started:
            connections = self.server_state.connections
            self._watch = asyncio.create_task(hang_up_late(connections))
            # What is loaded by now stays for ever: no collection need look at it again.
            gc.collect()
            gc.freeze()
            gc.enable()
            os.write(self._ready, b"1")
        os.close(self._ready)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to stop."""
        self._running.is_draining = True
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return, ten times a second, whether it is time to leave."""
        if not await super().on_tick(counter):
            return False
        now = asyncio.get_running_loop().time()
        if self._leaves_at is None:
            self._leaves_at = now + self._drain_seconds
        return now >= self._leaves_at

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


def _open_as_many_as_allowed() -> None:
    """Raise the limit on open files, sockets among them, to what this user may have.

    What a shell starts with is often 1024: a thousand dapps.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS says "no limit" and allows less
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(application: str, drain_seconds: float, ready: int, *listeners: int) -> None:
    """Serve `package.module:name` until told to stop."""
    gc.disable()  # until all is loaded: it would look for garbage in it 300 times
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # The terminal sends Ctrl-C to everybody; the supervisor passes it on in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_SECONDS)
    catch_everything()
    _open_as_many_as_allowed()
    threading.Thread(target=_leave_with_supervisor, daemon=True).start()
    sockets = [socket.socket(fileno=listener) for listener in listeners]
    inner_port = sockets[1].getsockname()[1] if len(sockets) > 1 else 0
    Worker(application, ready, drain_seconds, inner_port).run(sockets=sockets)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:]))
