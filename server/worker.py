"""One worker process: uvicorn's server with the HTTP protocol of this package.

`server.supervisor` forks it (`server.forking`) and calls `main`.

- The application is `package.module:name` of an ASGI application with a lifespan. Its
  attribute `server_options` is a `server.options.ServerOptions`, if it has one.
- `drain_seconds` is how long the process still takes requests after SIGTERM.
- `pulse` is the descriptor of a pipe for heartbeats (`server.heartbeat`). The first one means
  that the worker serves requests.
- `listeners` has the descriptor of a socket to listen on; a second one is for operators.

Standard input ends when the supervisor does, even if that was killed. The worker then
stops, too, and the port is free again.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.importer import import_from_string
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.bounds import Limits
from server.handover import HandedOver
from server.heartbeat import beat
from server.http import HttpProtocol
from server.lifeline import end_with_parent
from server.options import ServerOptions
from server.process import CONNECTION, STATE, Process
from server.time_limits import KEEP_ALIVE_SECONDS
from server.turns import TURNS
from server.websocket import MAX_FRAME_BYTES, PING_SECONDS, WebSocketProtocol

logger = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""Time slice of threads, such as those of pages, before the event loop runs again. A
response needs several such switches. With Python's default of 5 ms, pages would delay
it by 20 ms."""

RECURSION_LIMIT = 1000
"""Python's default. Libraries of the fork server raise it, and deep JSON would then exceed
the stack and crash a worker."""

BACKLOG = 2048
"""Connections the kernel keeps while a worker is busy."""

OTHER_FILES = 256
"""Open files of a process besides connections of clients: the database, Redis, pipes."""

GRACE_SECONDS = 10
"""Time limit of requests in flight after the drain."""


CHECK_SECONDS = 1.0
"""Interval at which the limits of all connections are checked. A timer for each connection
would add to the cost of each request."""


class Worker(uvicorn.Server):
    """A uvicorn server whose connections speak `server.http` first.

    application: ASGI application with a lifespan.
    pulse: descriptor of the pipe for heartbeats, which begin when requests are answered.
    drain_seconds: how long the process still accepts requests after SIGTERM. During
        this time `/readyz` answers 503, and each response closes its connection.
    inner_port: the port for operators; 0 if there is none.
    """

    def __init__(
        self,
        application: Any,
        pulse: int,
        drain_seconds: float = 0,
        inner_port: int = 0,
    ) -> None:
        options = getattr(application, "server_options", ServerOptions())
        settings = uvicorn.Config(
            HandedOver(application),
            loop="uvloop",
            http=self._protocol,  # type: ignore[arg-type]
            ws=WebSocketProtocol,
            ws_max_size=MAX_FRAME_BYTES,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
            proxy_headers=True,
            forwarded_allow_ips=options.trusted_proxies,
            ws_per_message_deflate=False,  # 40 KB for each idle socket
            lifespan="on",
            backlog=BACKLOG,
            access_log=False,  # a line per request would hold the API key
            log_config=None,  # the application's logging settings
            log_level="warning",
            timeout_graceful_shutdown=GRACE_SECONDS,
            # `server.http` closes idle connections. uvicorn would also close those on
            # which headers are arriving.
            timeout_keep_alive=2 * KEEP_ALIVE_SECONDS,
        )
        super().__init__(settings)
        self._pulse = pulse
        self._drain_seconds = drain_seconds
        self._leaves_at: float | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.process = Process(self.server_state, options, inner_port)

    def _protocol(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        **_: Any,
    ) -> HttpProtocol:
        """Return the protocol of a new connection."""

        def make_inner(connection: HttpProtocol) -> HttpToolsProtocol:
            state = {**app_state, CONNECTION: connection}
            return HttpToolsProtocol(config, server_state, state)

        return HttpProtocol(self.process, make_inner)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, then send the first heartbeat."""
        compare_open_files(self.process.options.limits)
        self.lifespan.state[STATE] = self.process
        self.lifespan.state[TURNS] = self.process.turns
        await super().startup(sockets)
        if self.started:
            self._tasks.append(asyncio.create_task(self._check_limits()))
            # Objects that exist now are kept for ever. No collection visits them again.
            gc.collect()
            gc.freeze()
            gc.enable()
            # Until the loop ends, because a drain can take longer than the supervisor's
            # limit for a missing heartbeat.
            self._tasks.append(asyncio.create_task(beat(self._pulse)))
        else:
            os.close(self._pulse)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to stop."""
        self.process.is_draining = True
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether the process has to stop. uvicorn calls this ten times a second."""
        if not await super().on_tick(counter):
            return False
        now = asyncio.get_running_loop().time()
        if self._leaves_at is None:
            self._leaves_at = now + self._drain_seconds
        return now >= self._leaves_at

    async def _check_limits(self) -> None:
        """Enforce the time limits of connections until the process ends."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                self.process.check_limits(loop.time())
            except Exception:  # the limits have to be enforced next time, too
                logger.exception("the limits of connections could not be enforced")


def _open_as_many_as_allowed() -> None:
    """Raise the soft limit of open files, including sockets, to the hard limit.

    The default soft limit is often 1024, which is enough for a thousand dapps only.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS reports "no limit" but enforces one
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def compare_open_files(limits: Limits) -> None:
    """Warn if one client can open more connections than the process may open files."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(limits.per_key, limits.per_address) + OTHER_FILES
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        logger.warning(
            "a process may open %d files, and one client may have %d connections: allow "
            "%d open files (ulimit -n), or lower the limits of connections",
            *(allowed, wanted - OTHER_FILES, wanted),
        )


def main(application: str, drain_seconds: float, pulse: int, *listeners: int) -> None:
    """Serve `package.module:name` until SIGTERM."""
    gc.disable()  # until all modules are loaded, to avoid 300 useless collections
    # The terminal sends SIGINT to all processes. The supervisor stops the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_SECONDS)
    sys.setrecursionlimit(RECURSION_LIMIT)
    _open_as_many_as_allowed()
    end_with_parent()
    sockets = [socket.socket(fileno=listener) for listener in listeners]
    inner_port = sockets[1].getsockname()[1] if len(sockets) > 1 else 0
    loaded = import_from_string(application)
    Worker(loaded, pulse, drain_seconds, inner_port).run(sockets=sockets)
