"""The application that the server loads: `config.asgi:application`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)  # the imports below need that

from django.conf import settings  # noqa: E402

from config.gateway import Gateway  # noqa: E402
from config.health import Health, Readiness, livez  # noqa: E402
from config.metrics import Metrics  # noqa: E402
from config.pages import Pages  # noqa: E402
from config.request_log import RequestLog  # noqa: E402
from config.shared_connections import SharedConnections  # noqa: E402
from nodeapi.service import build_endpoint, build_service  # noqa: E402
from wallets.service import build_wallet  # noqa: E402
from wallets.sockets.application import DappSockets  # noqa: E402
from wallets.sockets.hub import Hub  # noqa: E402
from wallets.sockets.inbox import InboxSockets  # noqa: E402

shared_connections = SharedConnections()  # before anybody opens one
node = build_service()
wallet = build_wallet(node)
hub = Hub(wallet)
inboxes = InboxSockets(wallet.watch)
endpoint = build_endpoint(node)
health = Health(node.connections, settings.REDIS_URL)
log = RequestLog(
    "all" if settings.REQUEST_LOG == "all" else "problems",
    slow_seconds=settings.REQUEST_LOG_SLOW_SECONDS,
    as_json=settings.LOG_FORMAT == "json",
)
application = Gateway(
    endpoint,
    Pages(),
    around=None if settings.REQUEST_LOG == "off" else log.around,
    sockets={"ws/dapp": DappSockets(hub), "ws/ui": inboxes},
    lean={
        "/livez": livez,
        "/readyz": Readiness(health),
        "/metrics": Metrics(node, endpoint, health, settings.METRICS_TOKEN),
    },
    parts=[shared_connections, wallet, hub, inboxes, health, log],
)
