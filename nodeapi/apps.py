"""The node app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from keys.served_methods import ServedMethod, register


class NodeApiConfig(AppConfig):
    """Blocks, state history and the JSON-RPC methods that read them."""

    name = "nodeapi"
    verbose_name = "Node"

    def ready(self) -> None:
        """Register the methods for allowlists, and what follows migrations."""
        register(_methods)
        post_migrate.connect(_after_migrations, sender=self)


def _after_migrations(**options: Any) -> None:
    """Add later forks to public networks. The EVM is only imported now."""
    from networks.migrated import is_migrated
    from nodeapi.chain.schedules import schedule_later_forks

    if is_migrated(options.get("using"), "networks", "nodeapi"):
        schedule_later_forks(**options)


def _methods() -> Iterator[ServedMethod]:
    """Yield the methods. They are imported when they are needed."""
    from nodeapi.methods import registry

    for method in registry:
        yield ServedMethod(method.name, method.summary)
