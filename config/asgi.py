"""The application that the server loads: `config.asgi:application`."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
pages = get_asgi_application()  # sets Django up: the imports below need that

from config.gateway import Gateway  # noqa: E402
from nodeapi.service import build_endpoint, build_service  # noqa: E402
from wallets.service import build_wallet  # noqa: E402
from wallets.sockets.application import DappSockets  # noqa: E402
from wallets.sockets.hub import Hub  # noqa: E402
from wallets.sockets.inbox import InboxSockets  # noqa: E402

node = build_service()
wallet = build_wallet(node)
hub = Hub(wallet)
inboxes = InboxSockets(wallet.watch)
application = Gateway(
    build_endpoint(node),
    pages,
    sockets={"ws/dapp": DappSockets(hub), "ws/ui": inboxes},
    parts=[wallet, hub, inboxes],
)
