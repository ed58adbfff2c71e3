"""The method registries. Importing the other modules of this package fills them."""

from __future__ import annotations

from jsonrpc.registry import MethodRegistry

session_methods = MethodRegistry()
"""The methods that a dapp calls. Parameters are named, handlers return an `Answer`."""

chain_methods = MethodRegistry()
"""Methods that wallet_invokeMethod calls on a chain, besides the node's own.

Handlers take an `Invocation` instead of a context.
"""

own_methods = MethodRegistry()
"""Methods that wallet_invokeMethod calls on `wallet:eip155`.

Handlers take an `Invocation` instead of a context.
"""
