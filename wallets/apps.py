"""The wallets app."""

from django.apps import AppConfig


class WalletsConfig(AppConfig):
    """Wallet users, their accounts and the sessions of dapps."""

    name = "wallets"

    def ready(self) -> None:
        """Begin to hear of log-ins and of passwords that change; register methods."""
        from wallets.methods import chain, confirmed, own, transactions  # noqa: F401
        from wallets.pages import recent  # noqa: F401
        from wallets.services import tokens  # noqa: F401
