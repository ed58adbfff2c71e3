"""Errors of the node's own: blocks and states in geth's words, then networks and methods.

Source: go-ethereum eth/api_backend.go, eth/tracers/api.go, internal/ethapi/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from jsonrpc.errors import RpcError


class HeaderNotFound(RpcError):
    """Raised when a block number is above the head, or a network has no blocks."""

    def __init__(self) -> None:
        super().__init__("header not found")


class HeaderForHashNotFound(RpcError):
    """Raised when a state is asked for at a hash that is no block's."""

    def __init__(self) -> None:
        super().__init__("header for hash not found")


class NotCanonical(RpcError):
    """Raised when a canonical block is required and the hash is a side block's."""

    def __init__(self) -> None:
        super().__init__("hash is not currently canonical")


class BlockNotFound(RpcError):
    """Raised when a block that is to be traced, or to be given raw, is not there.

    block: its hash, or `#` and its number or tag.
    """

    def __init__(self, block: bytes | int | str) -> None:
        name = f"0x{block.hex()}" if isinstance(block, bytes) else f"#{block}"
        super().__init__(f"block {name} not found")


class GenesisNotTraceable(RpcError):
    """Raised when block 0 is to be traced, which nothing was executed for."""

    text = "genesis is not traceable"


class TransactionNotFound(RpcError):
    """Raised when no canonical block has the transaction that is to be traced."""

    text = "transaction not found"


class TooManySlots(RpcError):
    """Raised when one call asks for more storage slots than are allowed."""

    code = -38026

    def __init__(self, limit: int) -> None:
        super().__init__(f"too many slots (max {limit})")


class MethodNotEntitled(RpcError):
    """Raised when a key was not granted what a method demands, or no longer.

    network: its slug. contact: whom to ask. expired_at: Unix seconds, when it was
    granted once.
    """

    http_status = 403
    code = -32002
    reason = "method_not_entitled"

    def __init__(
        self,
        method: str,
        network: str,
        *,
        contact: str,
        expired_at: float | None = None,
    ) -> None:
        ended, details = "", {"method": method, "network": network}
        if expired_at is not None:
            moment = f"{datetime.fromtimestamp(expired_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
            ended = f": that expired on {moment}"
            details["expired_at"] = moment
        super().__init__(
            f"{method} is not enabled for this API key on {network}{ended}"
            f"; ask {contact} about custom plans",
            **details,
        )


_UNNAMED_TRACERS = {
    "structLog": "the struct logger (no tracer was named)",
    "javascript": "a JavaScript tracer",
}
"""How a tracer is called that a request does not name by its own name."""


def _spoken(tracer: str) -> str:
    return _UNNAMED_TRACERS.get(tracer) or f'tracer "{tracer}"'


class TracerNotAvailable(RpcError):
    """Raised when a network does not offer a tracer to anybody.

    network: its slug. available: what it does offer.
    """

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
    """Raised when a network offers a tracer, and the key was granted others.

    network: its slug. contact: whom to ask.
    """

    http_status = 403
    code = -32002
    reason = "tracer_not_entitled"

    def __init__(self, tracer: str, network: str, *, contact: str) -> None:
        super().__init__(
            f"{_spoken(tracer)} is not enabled for this API key on {network}"
            f"; ask {contact} about custom plans",
            tracer=tracer,
            network=network,
        )


class TraceTooLarge(RpcError):
    """Raised when a transaction did more than is recorded of one.

    index: its place in the block.
    """

    reason = "trace_too_large"

    def __init__(self, index: int) -> None:
        super().__init__(
            f"transaction {index} of the block did too much to be recorded, "
            "so that this tracer has no answer to it",
            index=index,
        )


class UnknownNetwork(RpcError):
    """Raised when no network has the name in a base address."""

    http_status = 404
    code = -32001
    reason = "unknown_network"
    text = "unknown network"


class UnknownPath(RpcError):
    """Raised when a path is no base address with a key behind it."""

    http_status = 404
    code = -32001
    reason = "unknown_path"
    text = "no such path: POST to /v3/<API_KEY> or /<network>/v3/<API_KEY>"
