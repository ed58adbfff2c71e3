"""The wallets app."""

from django.apps import AppConfig


class WalletsConfig(AppConfig):
    """Wallet users, their accounts and the sessions of dapps."""

    name = "wallets"

    def ready(self) -> None:
        """Begin to note when browsers log in."""
        from wallets.pages import recent  # noqa: F401  # it hears of log-ins
