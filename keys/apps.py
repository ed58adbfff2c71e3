"""The keys app."""

from django.apps import AppConfig


class KeysConfig(AppConfig):
    """API keys of customers."""

    name = "keys"
    verbose_name = "API keys"
