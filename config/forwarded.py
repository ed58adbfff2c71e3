"""Where a request comes from, as the proxies before this server tell it."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from config.gateway import Application, Receive, Scope, Send

_NAMES = {b"x-forwarded-for", b"x-forwarded-proto"}
"""Headers without which there is nothing to do."""


async def _nothing(*_: object) -> None:
    """Stand where the middleware expects an application."""


class Forwarded:
    """uvicorn's middleware, without a coroutine around what the application returns.

    proxies: addresses and networks whose X-Forwarded-For and X-Forwarded-Proto count,
        separated by commas.
    """

    def __init__(self, application: Application, proxies: str) -> None:
        self._application = application
        self._rewrite = ProxyHeadersMiddleware(cast(Any, _nothing), proxies)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Put client and scheme right, and pass the request on."""
        for name, _ in scope.get("headers", ()):
            if name in _NAMES:
                self._put_right(scope, receive, send)
                break
        return self._application(scope, receive, send)

    def _put_right(self, scope: Scope, receive: Receive, send: Send) -> None:
        rewriting = self._rewrite(cast(Any, scope), cast(Any, receive), cast(Any, send))
        with suppress(StopIteration):  # it waits for nothing
            rewriting.send(None)
