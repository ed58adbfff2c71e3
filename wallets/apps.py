"""The wallets app."""

from django.apps import AppConfig


class WalletsConfig(AppConfig):
    """Wallet users, their accounts and the sessions of dapps."""

    name = "wallets"

    def ready(self) -> None:
        """Connect signal receivers for log-ins and new passwords, and register methods."""
        from wallets.methods import chain, confirmed, own, transactions  # noqa: F401
        from wallets.pages import recent  # noqa: F401
        from wallets.services import tokens  # noqa: F401
