"""The node app."""

from django.apps import AppConfig


class NodeApiConfig(AppConfig):
    """Blocks, state history and the JSON-RPC methods that read them."""

    name = "nodeapi"
    verbose_name = "Node"

    def ready(self) -> None:
        """Register the system checks."""
        import nodeapi.checks  # noqa: F401  # registers its checks
