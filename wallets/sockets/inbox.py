"""`/ws/ui`: tells a user's open inbox to look, when something on his pages has changed.

What is told holds nothing: the page asks for itself again, as whoever is logged in by
then. Nothing is taken on the way in.
"""

from __future__ import annotations

import asyncio
import io
import logging
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error as DatabaseError

from nodeapi.http import Receive, Scope, Send
from wallets.sockets import limits, outbox
from wallets.sockets.handshake import refuse
from wallets.sockets.outbox import WIRE, Outbox
from wallets.threads import in_thread
from wallets.visitors import users_by_session
from wallets.watch import Watch

logger = logging.getLogger(__name__)

LOOK = b"look"
"""The one frame that there is."""

SWEEP_SECONDS = 2.0
"""Between two looks whether those whose inboxes are open are still logged in."""

PAUSE_SECONDS = 0.1
"""Between two rounds of telling: what happens meanwhile is told once."""

RETRY_SECONDS = 1.0
"""Pause after a round that the database did not answer."""

_SESSION_KEY = re.compile(r"[0-9a-z]{8,40}")


@dataclass(slots=True, eq=False)
class Inbox:
    """One open page.

    key: of the browser's session. has_news: whether there is something to tell.
    """

    key: str
    user_id: int
    outbox: Outbox
    has_news: bool = False


class InboxSockets:
    """Serves `/ws/ui`, an ASGI application; looks after its sockets.

    The cookie of the log-in opens a socket, but to the site's own pages alone: browsers
    send it along from other sites' pages too, with the Origin header that tells.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._inboxes: set[Inbox] = set()
        self._handshakes = 0
        self._news = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to tell."""
        self._telling = asyncio.create_task(self._tell_all())

    async def stop(self) -> None:
        """Leave; the sockets have gone."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        await receive()
        key = _session_key(scope)
        if key is None:
            await refuse(send, 403, "for this site's own pages, to who is logged in")
            return
        if self._handshakes >= limits.MAX_INBOX_HANDSHAKES:
            await refuse(send, 503, "too many connect at once")
            return
        self._handshakes += 1
        try:
            user_id = (await in_thread(users_by_session, [key])).get(key)
        except DatabaseError:
            await refuse(send, 503, "try again soon")
            return
        finally:
            self._handshakes -= 1
        if user_id is None:
            await refuse(send, 403, "for this site's own pages, to who is logged in")
        elif sum(i.user_id == user_id for i in self._inboxes) >= limits.MAX_INBOXES:
            await refuse(send, 429, f"more than {limits.MAX_INBOXES} open inboxes")
        else:
            inbox = Inbox(key, user_id, Outbox(scope["extensions"][WIRE]))
            await self._serve(inbox, receive, send)

    async def _serve(self, inbox: Inbox, receive: Receive, send: Send) -> None:
        """Open a connection, and have it told until it is closed."""

        def hear() -> None:
            inbox.has_news = True
            self._news.set()

        self._inboxes.add(inbox)
        try:
            await send({"type": "websocket.accept"})
            unfollow = self._watch.follow_user(inbox.user_id, hear)
            try:
                hear()  # of what has come since the page was made
                while (await receive())["type"] != "websocket.disconnect":
                    inbox.outbox.close(outbox.NOTHING_IS_TAKEN, "nothing is read here")
            finally:
                unfollow()
        finally:
            self._inboxes.discard(inbox)
            inbox.outbox.is_open = False

    async def _tell_all(self) -> None:
        """Tell whoever there is news for; look at all every now and then."""
        loop = asyncio.get_running_loop()
        sweep_at = loop.time() + SWEEP_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(sweep_at):
                    await self._news.wait()
            self._news.clear()
            is_sweep = loop.time() >= sweep_at
            try:
                await self._tell([i for i in self._inboxes if is_sweep or i.has_news])
            except Exception as error:
                is_away = isinstance(error, DatabaseError)
                logger.warning("inboxes are not told", exc_info=not is_away)
                self._news.set()
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if is_sweep:
                sweep_at = loop.time() + SWEEP_SECONDS
            await asyncio.sleep(PAUSE_SECONDS)

    async def _tell(self, inboxes: Collection[Inbox]) -> None:
        """Tell inboxes their news; close those of whoever is not logged in any more.

        Raises: django.db.Error.
        """
        keys = {inbox.key for inbox in inboxes}
        users = await in_thread(users_by_session, keys) if keys else {}
        for inbox in inboxes:
            if users.get(inbox.key) != inbox.user_id:
                inbox.outbox.close(outbox.REVOKED, "logged out")
            elif inbox.has_news:
                inbox.has_news = False
                inbox.outbox.send(LOOK)


def _session_key(scope: Scope) -> str | None:
    """Return the key of the session of a browser that shows a page of this site.

    None when there is none, and when it shows a page of another origin, or says none.
    """
    # Django reads it as a page's request: names that are served, proxies, cookies.
    scheme = "https" if scope["scheme"] == "wss" else "http"
    page = {**scope, "type": "http", "method": "GET", "scheme": scheme}
    request = ASGIRequest(page, io.BytesIO())
    try:
        own = f"{scheme}://{request.get_host()}"
    except DisallowedHost:
        return None
    if request.headers.get("Origin") not in [own, *settings.CSRF_TRUSTED_ORIGINS]:
        return None
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    return key if _SESSION_KEY.fullmatch(key) else None
