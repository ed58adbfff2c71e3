"""The registers of methods; the modules beside this one add to them, at the start."""

from __future__ import annotations

from jsonrpc.registry import MethodRegistry

session_methods = MethodRegistry()
"""What a dapp calls. Its parameters have names, and handlers return an `Answer`."""

chain_methods = MethodRegistry()
"""What stands behind wallet_invokeMethod on a chain, beside the node's own methods.

Handlers take an `Invocation` in the place of a context.
"""

own_methods = MethodRegistry()
"""What stands behind wallet_invokeMethod in `wallet:eip155`; handlers likewise."""
