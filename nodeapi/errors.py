"""Errors of blocks and states, in geth's words.

Source: go-ethereum eth/api_backend.go
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
