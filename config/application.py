"""The parts of a web process, and how they are connected."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.routing import URLRouter
from django.conf import settings
from django.db import connections
from django.urls import re_path

from config.chain_metrics import ChainMetrics
from config.gateway import Gateway, LazyPart, refuse
from config.health import Health, Readiness, livez
from config.logs import catch_everything
from config.metrics import Metrics
from config.pages import Pages
from config.request_log import RequestLog
from config.variables import site
from explorer.erc20 import with_tokens
from explorer.pending import with_pending
from keys.notices.job import NoticeJob
from nodeapi.consumers import websocket_urlpatterns as node_patterns
from nodeapi.endpoint.endpoint import build_endpoint
from nodeapi.endpoint.responses import REFUSALS
from nodeapi.node import build_node
from nodeapi.sockets.hub import Hub as NodeHub
from wallets import routing as wallet_routing
from wallets.methods import chain, confirmed, own, transactions  # noqa: F401
from wallets.nodes.page_node import with_node
from wallets.serving.wallet import build_wallet
from wallets.sockets.hub import Hub
from wallets.sockets.inbox import Inboxes


class DatabasePool(LazyPart):
    """The pool of `config.services.with_pool`, as a part of the application."""

    async def stop(self) -> None:
        """Close all connections of the pool."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        database: Any = connections["default"]
        database.close_pool()


def build() -> Gateway:
    """Return the ASGI application, with parts of its own."""
    node = build_node()
    endpoint = build_endpoint(node)
    wallet = build_wallet(node, endpoint.calls)
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
        with_pending(Pages(), node.relay, node.directory),
        *(node.store, node.tracing, node.values),
    )
    pages = with_node(explorer, wallet)
    health = Health(node.connections, node.subscriber, settings.REDIS_URL)
    chains = ChainMetrics(node.connections)
    catch_everything()
    return Gateway(
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
