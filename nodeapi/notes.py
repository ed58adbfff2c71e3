"""What a request is put on record with, where somebody keeps such records."""

from __future__ import annotations

from typing import Protocol

from jsonrpc.errors import RpcError
from nodeapi.http import RequestId
from nodeapi.methods.context import Context


class Note(Protocol):
    """Is told of a request by the endpoint; see `nodeapi.http.NOTE`."""

    def admitted(self, context: Context) -> None:
        """Take down who asks, of which network."""

    def refused(self, request_id: RequestId, error: RpcError) -> None:
        """Take down why a request was not let in."""
