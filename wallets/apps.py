"""The wallets app."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class WalletsConfig(AppConfig):
    """Wallet users, their accounts and the sessions of dapps."""

    name = "wallets"

    def ready(self) -> None:
        """Connect signal receivers for log-ins and new passwords."""
        from django.contrib.auth.signals import user_logged_in

        from keys.signals import password_changed

        user_logged_in.connect(_store_login_time)
        password_changed.connect(_end_with_password)


# The receivers are imported when they are needed, because commands start without them.


def _store_login_time(**received: Any) -> None:
    from wallets.pages.recent import store_login_time

    store_login_time(**received)


def _end_with_password(**received: Any) -> None:
    from wallets.services.tokens import end_with_password

    end_with_password(**received)
