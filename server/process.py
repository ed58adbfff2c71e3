"""State of a worker process, shared by its connections and its application."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.server import ServerState

from server.bounds import Bounds
from server.options import ServerOptions
from server.turns import Turns
from server.websocket import WebSocketProtocol

logger = logging.getLogger(__name__)

STATE = "portcullis.server"
"""Key of the `Process` in the lifespan's state, and so in the state of each ASGI scope.
Source: https://asgi.readthedocs.io/en/stable/specs/lifespan.html#lifespan-state"""


CONNECTION = "portcullis.connection"
"""Key of the connection in the state of an ASGI scope."""


@dataclass(slots=True)
class Process:
    """State of a worker process.

    state: uvicorn's state: HTTP connections, WebSockets, and a task for each request
        and socket of the ASGI application.
    inner_port: the port for operators, or 0.
    is_draining: the process has received SIGTERM. It still answers, and each response
        closes its connection.
    connections: all HTTP connections, including those handed over to uvicorn.
    """

    state: ServerState
    options: ServerOptions
    inner_port: int = 0
    is_draining: bool = False
    bounds: Bounds = field(init=False)
    proxies: TrustedProxies = field(init=False)
    connections: set[Any] = field(default_factory=set)
    turns: Turns = field(default_factory=Turns)
    _defaults: Any = field(default=None, init=False)
    _default_lines: bytes = field(default=b"", init=False)

    def __post_init__(self) -> None:
        self.proxies = TrustedProxies(self.options.trusted_proxies)
        self.bounds = Bounds(self.options.limits, self.proxies.is_trusted)

    @property
    def websockets(self) -> int:
        """Number of open WebSockets."""
        return sum(isinstance(one, WebSocketProtocol) for one in self.state.connections)

    @property
    def in_flight(self) -> int:
        """Number of requests that are being answered, of all kinds."""
        tasks = max(0, len(self.state.tasks) - self.websockets)
        requests = [one for one in self.connections if one.is_answering]
        return tasks + len(requests)

    def check_limits(self, now: float) -> None:
        """Enforce the time limits of all connections. To be called about once a second.

        now: the event loop's time.
        """
        for connection in list(self.connections):
            try:
                connection.check_limits(now)
            except Exception:
                logger.exception("the limits of a connection could not be enforced")
                connection.transport.abort()
        self.bounds.log(now)

    def default_headers(self) -> bytes:
        """Return the header lines of every response: date and server.

        uvicorn replaces the list each second.
        """
        headers = self.state.default_headers
        if headers is not self._defaults:
            self._defaults = headers
            self._default_lines = b"".join(b"%b: %b\r\n" % each for each in headers)
        return self._default_lines


def process_of(scope: dict[str, Any]) -> Process | None:
    """Return the process that serves an ASGI scope; None under another server."""
    found: Process | None = scope.get("state", {}).get(STATE)
    return found


class TrustedProxies:
    """Reads X-Forwarded-For as uvicorn does for ASGI applications.

    proxies: addresses and networks, separated by commas; `*` for all.
    """

    def __init__(self, proxies: str) -> None:
        middleware = ProxyHeadersMiddleware(cast(Any, None), proxies)
        self._trusted = middleware.trusted_hosts
        self.is_trusted = lru_cache(4096)(self._is_trusted)
        """Returns whether an address is a trusted proxy's."""

    def _is_trusted(self, address: str) -> bool:
        return address in self._trusted

    def client(self, peer: str | None, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the IP address of the client that sent a request.

        peer: address of the other end of the connection. None on a Unix socket.
        """
        forwarded = headers.get(b"x-forwarded-for")
        if forwarded is None or peer is None or not self.is_trusted(peer):
            return peer
        text = forwarded.decode("latin-1")
        address, _ = self._trusted.get_trusted_client_address(text)
        return address or peer
