"""The wallets app."""

from django.apps import AppConfig


class WalletsConfig(AppConfig):
    """Wallet users, their accounts and the sessions of dapps."""

    name = "wallets"
