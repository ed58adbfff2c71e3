"""Options that an application passes to the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from server.bounds import Limits
from server.request import Handler


def _no_path(path: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of an application: the value of its attribute `server_options`.

    handler: answers requests whose path is a node path. If None, the application answers
        all requests through ASGI.
    is_node_path: returns whether a percent-decoded path is a node path.
    refusals: a complete HTTP response for each limit (process, key, address, connections),
        sent to a client that exceeds it while its request can still be answered.
    trusted_proxies: addresses and networks, separated by commas, whose X-Forwarded-For
        and X-Forwarded-Proto headers count.
    """

    handler: Handler | None = None
    is_node_path: Callable[[str], bool] = _no_path
    refusals: Mapping[str, bytes] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    trusted_proxies: str = "127.0.0.1"
