"""The outbox app."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """The transactional outbox."""

    name = "outbox"
