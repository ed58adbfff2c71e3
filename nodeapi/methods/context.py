"""What the methods know of a request."""

from __future__ import annotations

from dataclasses import dataclass

from jsonrpc.registry import Method
from keys.grants import Grant
from networks.directory import NetworkView
from nodeapi.errors import MethodNotEntitled
from nodeapi.http import RequestId
from nodeapi.ports import Store

TRACE = "trace"
"""The capability to have blocks traced."""


@dataclass(slots=True)
class Context:
    """A request that was let in: by what key, to which network, and what it reads."""

    request_id: RequestId
    grant: Grant
    network: NetworkView
    store: Store

    def authorise(self, method: Method) -> None:
        """Raise MethodNotEntitled when the key lacks what a method demands."""
        if method.capability == TRACE and not self.grant.may_trace:
            raise MethodNotEntitled(method.name, self.network.slug)
