"""The open pages of users, which reload their lists of requests.

A frame contains no data. It makes the page request its list again, with the login
that the browser has by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseError
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from keys.models import User
from nodeapi.frames import close_codes
from nodeapi.frames.writer import FrameWriter
from nodeapi.sockets.handshake import Rejected
from wallets.serving.threads import in_thread
from wallets.serving.watch import Watch
from wallets.sockets import limits
from wallets.sockets.handshake import NOT_LOGGED_IN

logger = logging.getLogger(__name__)

RELOAD = b"look"
"""The only frame: reload the list."""

SWEEP_SECONDS = 2.0
"""Interval at which the logins of all open pages are checked."""

PAUSE_SECONDS = 0.1
"""Minimum interval between two frames: changes within it share one frame."""

RETRY_SECONDS = 1.0
"""Pause after a database error."""


@dataclass(slots=True, eq=False)
class Inbox:
    """One open page.

    key: the key of the login session (`django_session`).
    is_open: the handshake has been accepted.
    is_due: a frame has to be sent.
    """

    key: str
    user_id: int
    writer: FrameWriter
    is_open: bool = False
    is_due: bool = False


class Inboxes:
    """The open pages of a process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._inboxes: dict[Inbox, Callable[[], None]] = {}
        self._handshakes = 0
        self._due = asyncio.Event()
        self._notifier: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the task that sends frames."""
        self._notifier = asyncio.create_task(self._run_notifier())

    async def stop(self) -> None:
        """Cancel the task. Call it after the sockets were closed."""
        if self._notifier is not None:
            self._notifier.cancel()
            await asyncio.gather(self._notifier, return_exceptions=True)

    async def admit(self, key: str) -> int:
        """Return the id of the user who is logged in with a session.

        Raises: Rejected.
        """
        if self._handshakes >= limits.MAX_INBOX_HANDSHAKES:
            raise Rejected(503, "too many handshakes in progress")
        self._handshakes += 1
        try:
            user_id = (await in_thread(users_by_session, [key])).get(key)
        except DatabaseError as error:
            raise Rejected(503, "try again soon") from error
        finally:
            self._handshakes -= 1
        if user_id is None:
            raise Rejected(403, NOT_LOGGED_IN)
        if sum(i.user_id == user_id for i in self._inboxes) >= limits.MAX_INBOXES:
            raise Rejected(429, f"more than {limits.MAX_INBOXES} open inboxes")
        return user_id

    async def join(self, inbox: Inbox) -> None:
        """Add a page. No change is missed when this has returned."""
        mark_due = partial(self.mark_due, inbox)
        self._inboxes[inbox] = self._watch.subscribe_user(inbox.user_id, mark_due)
        await self._watch.follow_user(inbox.user_id)

    def open(self, inbox: Inbox) -> None:
        """Begin to send frames; the first one is for changes since the page was made."""
        inbox.is_open = True
        self.mark_due(inbox)

    def mark_due(self, inbox: Inbox) -> None:
        """Send a frame to a page soon."""
        inbox.is_due = True
        self._due.set()

    def leave(self, inbox: Inbox) -> None:
        """Remove a page whose socket is closed."""
        self._inboxes.pop(inbox)()
        inbox.writer.is_open = False

    async def _run_notifier(self) -> None:
        """Send due frames; check all logins every SWEEP_SECONDS."""
        loop = asyncio.get_running_loop()
        sweep_at = loop.time() + SWEEP_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(sweep_at):
                    await self._due.wait()
            self._due.clear()
            is_sweep = loop.time() >= sweep_at
            try:
                opened = [inbox for inbox in self._inboxes if inbox.is_open]
                await self._notify([i for i in opened if is_sweep or i.is_due])
            except Exception as error:
                is_away = isinstance(error, DatabaseError)
                logger.warning(
                    "open pages are not notified: %s", error, exc_info=not is_away
                )
                self._due.set()
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if is_sweep:
                sweep_at = loop.time() + SWEEP_SECONDS
            await asyncio.sleep(PAUSE_SECONDS)

    async def _notify(self, inboxes: Collection[Inbox]) -> None:
        """Send due frames, and close the sockets of ended logins.

        Raises: django.db.Error.
        """
        keys = {inbox.key for inbox in inboxes}
        users = await in_thread(users_by_session, keys) if keys else {}
        for inbox in inboxes:
            if users.get(inbox.key) != inbox.user_id:
                inbox.writer.close(close_codes.REVOKED, "logged out")
            elif inbox.is_due:
                inbox.is_due = False
                inbox.writer.send(RELOAD)


def users_by_session(keys: Collection[str]) -> dict[str, int]:
    """Return user ids by session key, for valid logins only.

    A key is missing if its session has expired, the user was deactivated, or the
    password was changed after the login.
    """
    live = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    sessions = {row.session_key: row.get_decoded() for row in live}
    named = {key: _user_id(session) for key, session in sessions.items()}
    users = User.objects.filter(is_active=True).in_bulk(set(named.values()) - {0})
    return {
        key: user_id
        for key, user_id in named.items()
        if user_id in users and _is_of(sessions[key], users[user_id])
    }


def _user_id(session: Mapping[str, Any]) -> int:
    """Return the user id in a session's data, 0 without a login."""
    is_ours = session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS
    return int(session.get(SESSION_KEY, 0)) if is_ours else 0


def _is_of(session: Mapping[str, Any], user: User) -> bool:
    """Return whether a login was made with the user's present password."""
    shown = session.get(HASH_SESSION_KEY, "")
    good = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(shown, one) for one in good)
