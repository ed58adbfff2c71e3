"""Errors of the node's own: blocks and states in geth's words, then networks and methods.

Source: go-ethereum eth/api_backend.go, internal/ethapi/errors.go
"""

from __future__ import annotations

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


class TooManySlots(RpcError):
    """Raised when one call asks for more storage slots than are allowed."""

    code = -38026

    def __init__(self, limit: int) -> None:
        super().__init__(f"too many slots (max {limit})")


class MethodNotEntitled(RpcError):
    """Raised when a key was not granted what a method demands.

    network: its slug.
    """

    http_status = 403
    code = -32002
    reason = "method_not_entitled"

    def __init__(self, method: str, network: str) -> None:
        super().__init__(
            f"{method} is not enabled for this API key on {network}",
            method=method,
            network=network,
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
