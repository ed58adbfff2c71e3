"""The ASGI application that the server loads: `config.asgi:application`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Pages need 8 (`config.pages`), the wallet's calls 4, uses of revoked keys 4, and emails
# about keys one for a moment every minute.
os.environ.setdefault("DATABASE_POOL", "16")
django.setup(set_prefix=False)  # the imports below need Django's apps

from channels.routing import URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import re_path  # noqa: E402

from config.chain_metrics import ChainMetrics  # noqa: E402
from config.database_pool import DatabasePool  # noqa: E402
from config.gateway import Gateway, refuse  # noqa: E402
from config.health import Health, Readiness, livez  # noqa: E402
from config.logs import catch_everything  # noqa: E402
from config.metrics import Metrics  # noqa: E402
from config.pages import Pages  # noqa: E402
from config.request_log import RequestLog  # noqa: E402
from config.variables import site  # noqa: E402
from explorer.erc20 import with_tokens  # noqa: E402
from explorer.pending import with_pending  # noqa: E402
from keys.notices.job import NoticeJob  # noqa: E402
from nodeapi.consumers import websocket_urlpatterns as node_patterns  # noqa: E402
from nodeapi.endpoint.endpoint import build_endpoint  # noqa: E402
from nodeapi.endpoint.responses import REFUSALS  # noqa: E402
from nodeapi.node import build_node  # noqa: E402
from nodeapi.sockets.hub import Hub as NodeHub  # noqa: E402
from wallets import routing as wallet_routing  # noqa: E402
from wallets.effects.page_node import with_node  # noqa: E402
from wallets.service import build_wallet  # noqa: E402
from wallets.sockets.hub import Hub  # noqa: E402
from wallets.sockets.inbox import Inboxes  # noqa: E402

node = build_node()
wallet = build_wallet(node)
endpoint = build_endpoint(node)
log = RequestLog(
    "all" if settings.REQUEST_LOG == "all" else "problems",
    slow_seconds=settings.REQUEST_LOG_SLOW_SECONDS,
    as_json=settings.LOG_FORMAT == "json",
)
node_hub = NodeHub(
    node,
    endpoint,
    answer_bytes=settings.NODEAPI_MAX_BATCH_RESPONSE_BYTES,
    log=None if settings.REQUEST_LOG == "off" else log,
)
hub = Hub(wallet)
inboxes = Inboxes(wallet.watch)
# Channels routes to ASGI applications, where Django's types expect views.
others = re_path(r"", refuse)  # type: ignore[arg-type]
sockets = URLRouter(
    [
        *node_patterns(node_hub),
        *wallet_routing.websocket_urlpatterns(hub, inboxes),
        others,
    ]
)
explorer = with_tokens(
    with_pending(Pages(), node.relay, node.directory), node.store, node.tracing
)
pages = with_node(explorer, wallet)
health = Health(node.connections, node.subscriber, settings.REDIS_URL)
chains = ChainMetrics(node.connections)
catch_everything()
application = Gateway(
    endpoint if settings.REQUEST_LOG == "off" else log.around_node(endpoint),
    pages if settings.REQUEST_LOG == "off" else log.around_pages(pages),
    sockets=sockets,
    lean={
        "/livez": livez,
        "/readyz": Readiness(health),
        "/metrics": Metrics(node, endpoint, health, chains, settings.METRICS_TOKEN),
    },
    parts=[
        *(endpoint, node_hub, DatabasePool(), wallet, hub, inboxes),
        *(health, chains, log, NoticeJob()),
    ],
    limits=settings.CLIENT_LIMITS,
    refusals=REFUSALS,
    trusted_proxies=site.FORWARDED_ALLOW_IPS.value(),
)
