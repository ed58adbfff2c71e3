"""Where a request comes from, as the proxies before this server tell it."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from config.gateway import AnswerOne, Application, Receive, Recognise, Scope, Send

_NAMES = {b"x-forwarded-for", b"x-forwarded-proto"}
"""Headers without which there is nothing to do."""


async def _nothing(*_: Any) -> Any:
    """Stand where the middleware expects an application, or a channel."""


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
        self._put_right(scope)
        return self._application(scope, receive, send)

    @property
    def recognise(self) -> Recognise | None:
        """Recognises heads as the application does, if that does."""
        recognise = getattr(self._application, "recognise", None)
        return None if recognise is None else partial(self._recognise, recognise)

    def _recognise(self, recognise: Recognise, scope: Scope) -> AnswerOne | None:
        self._put_right(scope)
        return recognise(scope)

    def _put_right(self, scope: Scope) -> None:
        for name, _ in scope.get("headers", ()):
            if name in _NAMES:
                rewriting = self._rewrite(cast(Any, scope), _nothing, _nothing)
                with suppress(StopIteration):  # it waits for nothing
                    rewriting.send(None)
                return
