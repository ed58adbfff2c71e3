"""The node app."""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import AppConfig

from keys.served_methods import ServedMethod, register


class NodeApiConfig(AppConfig):
    """Blocks, state history and the JSON-RPC methods that read them."""

    name = "nodeapi"
    verbose_name = "Node"

    def ready(self) -> None:
        """Register the methods for allowlists."""
        register(_methods)


def _methods() -> Iterator[ServedMethod]:
    """Yield the methods. They are imported when they are needed."""
    from nodeapi.methods import registry

    for method in registry:
        yield ServedMethod(method.name, method.summary)
