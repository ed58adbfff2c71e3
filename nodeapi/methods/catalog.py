"""The registry of the node's methods. Each namespace's module adds its methods."""

from __future__ import annotations

from jsonrpc.registry import MethodRegistry

registry = MethodRegistry()
