"""Paths of the node's WebSockets."""

from __future__ import annotations

from django.urls import URLPattern, re_path

from nodeapi.consumers import NodeConsumer
from nodeapi.sockets.hub import Hub


def websocket_urlpatterns(hub: Hub) -> list[URLPattern]:
    """Return the routes for Channels' `URLRouter`.

    Like those of `/v3`, the paths may have a slash at the end.
    hub: a part of the process. It has to be started.
    """
    consumer = NodeConsumer.as_asgi(hub=hub)
    return [re_path(r"^(?:[^/]+/)?ws/v3(?:/.*)?$", consumer)]
