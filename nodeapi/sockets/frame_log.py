"""The request log as the node's sockets see it: one line for each frame.

`config.request_log` implements it, and nothing is written where it is off.
"""

from __future__ import annotations

from typing import Protocol

from jsonrpc.errors import RpcError
from keys.site import Headers
from nodeapi.methods.context import Context
from server.request_id import RequestId


class Line(Protocol):
    """The line of one frame, or of a rejected handshake, written by `end`."""

    def admitted(self, context: Context) -> None:
        """Record the key and the network of an authorized frame, and its calls."""

    def refused(self, request_id: RequestId, error: RpcError) -> None:
        """Record why a frame was not answered."""

    def end(self, size: int) -> None:
        """Write the line. size: bytes of the response."""


class FrameLog(Protocol):
    """Begins a line for each frame."""

    def begin(self, headers: Headers) -> Line:
        """Begin the line of a frame that has just arrived. headers: of the handshake."""


class _NoLine:
    def admitted(self, context: Context) -> None:
        pass

    def refused(self, request_id: RequestId, error: RpcError) -> None:
        pass

    def end(self, size: int) -> None:
        pass


class NoFrameLog:
    """A log that is off."""

    _line = _NoLine()

    def begin(self, headers: Headers) -> Line:
        """Return a line that is not written."""
        return self._line
