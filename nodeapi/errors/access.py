"""Methods and tracers that a key lacks, and URLs that name no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from jsonrpc.errors import RpcError


class MethodNotEntitled(RpcError):
    """Raised when a key lacks the entitlement for a method, or the entitlement expired.

    network: its slug. contact: for questions.
    tracing_page: path of the page on which the key's owner requests access.
    expired_at: Unix seconds, or None if the key never had the entitlement.
    """

    remedy = (
        "Request access to tracing in the dashboard, at the URL data.request_access."
    )
    http_status = 403
    code = -32002
    reason = "method_not_entitled"

    def __init__(
        self,
        method: str,
        network: str,
        *,
        tracing_page: str,
        contact: str,
        expired_at: float | None = None,
    ) -> None:
        ended, details = "", {"method": method, "network": network}
        if expired_at is not None:
            moment = f"{datetime.fromtimestamp(expired_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
            ended = f": the entitlement expired on {moment}"
            details["expired_at"] = moment
        super().__init__(
            f"{method} is not enabled for this API key on {network}{ended}"
            f"; ask {contact} about custom plans",
            **details,
        )
        self._tracing_page = tracing_page

    @property
    def links(self) -> Mapping[str, str]:
        """The links, including `request_access`: the page for requesting tracing."""
        return {**super().links, "request_access": self._tracing_page}


_UNNAMED_TRACERS = {
    "structLog": "the struct logger (no tracer was named)",
    "javascript": "a JavaScript tracer",
}
"""Descriptions of tracers that a request does not name."""


def _spoken(tracer: str) -> str:
    return _UNNAMED_TRACERS.get(tracer) or f'tracer "{tracer}"'


class TracerNotAvailable(RpcError):
    """Raised when a network does not offer a tracer.

    network: its slug. available: the tracers that it offers.
    """

    remedy = "Use a tracer that the message names."
    code = -32602
    reason = "tracer_not_available"

    def __init__(self, tracer: str, network: str, available: Iterable[str]) -> None:
        offered = sorted(available)
        names = ", ".join(f'"{name}"' for name in offered) or "none"
        super().__init__(
            f"invalid params: {_spoken(tracer)} is not available on {network}"
            f"; available: {names}",
            tracer=tracer,
            network=network,
            available=offered,
        )


class TracerNotEntitled(RpcError):
    """Raised when a network offers a tracer, but the key's entitlement excludes it.

    network: its slug. contact: for questions.
    tracing_page: path of the page on which the key's owner requests access.
    """

    remedy = (
        "Request access to the tracer in the dashboard, at the URL data.request_access."
    )
    http_status = 403
    code = -32002
    reason = "tracer_not_entitled"

    def __init__(
        self, tracer: str, network: str, *, tracing_page: str, contact: str
    ) -> None:
        super().__init__(
            f"{_spoken(tracer)} is not enabled for this API key on {network}"
            f"; ask {contact} about custom plans",
            tracer=tracer,
            network=network,
        )
        self._tracing_page = tracing_page

    @property
    def links(self) -> Mapping[str, str]:
        """The links, including `request_access`: the page for requesting tracing."""
        return {**super().links, "request_access": self._tracing_page}


class UnknownNetwork(RpcError):
    """Raised when a URL names an unknown network."""

    remedy = (
        "Check the network's name in the URL. The page about networks lists all of "
        "them."
    )
    http_status = 404
    code = -32001
    reason = "unknown_network"
    text = "unknown network"


class NetworkRetired(RpcError):
    """Raised when a network is no longer served.

    network: its slug.
    """

    remedy = "Use another network. The page about networks lists all of them."
    http_status = 410
    code = -32001
    reason = "network_retired"

    def __init__(self, network: str) -> None:
        super().__init__(f"the network {network} is no longer served", network=network)


class NetworkPreparing(RpcError):
    """Raised for most methods while a network is being imported for the first time.

    network: its slug. block: number of the last imported block, None without any.
    target: number of the upstreams' head, None if it is unknown.
    """

    remedy = "Wait: eth_syncing returns the progress. The network is listed when it is ready."
    http_status = 503
    code = -32005
    reason = "network_preparing"
    headers = {"Retry-After": "60"}

    def __init__(self, network: str, block: int | None, target: int | None) -> None:
        progress = f"block {block or 0}"
        if target is not None:
            progress += f" of {max(target, block or 0)}"
        super().__init__(
            f"the network {network} is being imported: {progress}",
            network=network,
            block=block,
            highest_block=target,
        )


class UnknownPath(RpcError):
    """Raised when a path is not that of a network, optionally with a key."""

    remedy = "Use the URL /v3/<API_KEY> or /<network>/v3/<API_KEY>."
    http_status = 404
    code = -32001
    reason = "unknown_path"
    text = "no such path: POST to /v3/<API_KEY> or /<network>/v3/<API_KEY>"
