"""The networks app."""

from django.apps import AppConfig


class NetworksConfig(AppConfig):
    """Networks that the provider serves."""

    name = "networks"
