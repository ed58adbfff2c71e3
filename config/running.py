"""What a server process tells its application of itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

STATE = "portcullis.server"
"""Where it is in the lifespan's state, and so in the state of each scope.
Source: https://asgi.readthedocs.io/en/stable/specs/lifespan.html#lifespan-state"""


@dataclass(slots=True)
class Running:
    """A server process at work.

    connections: uvicorn's, HTTP and WebSocket.
    tasks: one, or a future, for each request and each socket that an application serves.
    inner_port: where operators ask, 0 for nowhere.
    is_draining: whether it has been told to stop, and only finishes what has begun.
    """

    connections: Collection[Any]
    tasks: Collection[Any]
    inner_port: int = 0
    is_draining: bool = False


def running(scope: dict[str, Any]) -> Running | None:
    """Return the process that serves a request; None under another server."""
    found: Running | None = scope.get("state", {}).get(STATE)
    return found
