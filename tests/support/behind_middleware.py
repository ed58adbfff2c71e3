"""The project's application, with its WebSockets behind middleware of other packages."""

from __future__ import annotations

from typing import Any

from config import asgi  # sets up Django, which the imports below need

# isort: split
from channels.auth import AuthMiddlewareStack


class LineFeeds:
    """A middleware that appends a line feed to each JSON frame."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_line(message: Any) -> None:
            if message.get("text", "").startswith(("{", "[")):
                message = {**message, "text": message["text"] + "\n"}
            await send(message)

        await self._application(scope, receive, send_line)


class Application:
    """The whole application; the middleware serves WebSockets only."""

    server_options = asgi.application.server_options

    def __init__(self) -> None:
        self._sockets = AuthMiddlewareStack(LineFeeds(asgi.application))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_socket = scope["type"] == "websocket"
        serve = self._sockets if is_socket else asgi.application
        await serve(scope, receive, send)


application = Application()
