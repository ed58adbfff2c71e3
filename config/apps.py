"""The project's own app: its commands and checks."""

from django.apps import AppConfig

from server import forking


class ConfigConfig(AppConfig):
    """Makes the management commands of `config` available."""

    name = "config"

    def ready(self) -> None:
        """Register the system checks, and what the fork server imports."""
        import config.checks  # noqa: F401  # registers its checks

        forking.shared.module = "config.preload"
