"""The node's methods, one module for each namespace.

Inside a method the order is always: decode, authorise, load, compute, encode.
"""

from __future__ import annotations

from nodeapi.methods import eth, eth_transactions, net, rpc, web3
from nodeapi.methods.catalog import registry

__all__ = ["eth", "eth_transactions", "net", "registry", "rpc", "web3"]
