"""The keys app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class KeysConfig(AppConfig):
    """API keys of customers."""

    name = "keys"
    verbose_name = "API keys"

    def ready(self) -> None:
        """Register the system checks, and create staff groups after migrations."""
        import keys.checks  # noqa: F401  # registers its checks
        from keys.groups import make_groups  # models are loaded by now

        post_migrate.connect(make_groups, sender=self)
