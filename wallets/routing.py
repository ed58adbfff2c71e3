"""Paths of the wallet's WebSockets."""

from __future__ import annotations

from django.urls import URLPattern, path

from wallets.consumers import DappConsumer, InboxConsumer
from wallets.sockets.hub import Hub
from wallets.sockets.inbox import Inboxes


def websocket_urlpatterns(hub: Hub, inboxes: Inboxes) -> list[URLPattern]:
    """Return the routes for Channels' `URLRouter`.

    hub, inboxes: parts of the process. They have to be started.
    """
    return [
        path("ws/dapp", DappConsumer.as_asgi(hub=hub)),
        path("ws/ui", InboxConsumer.as_asgi(inboxes=inboxes)),
    ]
