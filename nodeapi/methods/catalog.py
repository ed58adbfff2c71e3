"""The one register of the node's methods; each namespace's module adds to it."""

from __future__ import annotations

from jsonrpc.registry import MethodRegistry

registry = MethodRegistry()
