"""URLs of the wallet's pages, below `/wallet/`."""

from __future__ import annotations

from django.urls import path

# They register what the pages offer.
from wallets.methods import chain, confirmed, own, transactions  # noqa: F401
from wallets.pages import (
    accounts,
    connections,
    keystores,
    pairing,
    requests,
    signatures,
)
from wallets.pages.tokens import exchange

app_name = "wallet"
urlpatterns = [
    path("", requests.inbox, name="inbox"),
    path("requests/<int:pk>", requests.consent, name="consent"),
    path("signatures/<int:pk>", signatures.signature, name="signature"),
    path("accounts", accounts.accounts, name="accounts"),
    path("accounts/create", keystores.create, name="account_create"),
    path("accounts/import", keystores.import_account, name="account_import"),
    path("accounts/<int:pk>/key", keystores.key, name="key"),
    path("accounts/<int:pk>/key/delete", keystores.delete, name="key_delete"),
    path("accounts/<int:pk>/rename", accounts.rename, name="rename"),
    path("accounts/<int:pk>/move", accounts.move, name="move"),
    path("accounts/<int:pk>/remove", accounts.remove, name="remove"),
    path("connections", connections.connections, name="connections"),
    path(
        "connections/disconnect",
        connections.disconnect_everything,
        name="disconnect_all",
    ),
    path("connections/<int:pk>", connections.connection, name="connection"),
    path("connections/<int:pk>/disconnect", connections.disconnect, name="disconnect"),
    path("connections/<int:pk>/block", connections.block, name="block"),
    path("connections/<int:pk>/unblock", connections.unblock, name="unblock"),
    path("connect", pairing.connect, name="connect"),
    path("programs", pairing.program, name="program"),
    path("token", exchange, name="token"),
    path("activity", connections.activity, name="activity"),
]
