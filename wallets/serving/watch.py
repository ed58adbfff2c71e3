"""Subscriptions of this process to changes of dapps and of users' pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from outbox.streams import ACCOUNT, wallet
from outbox.subscriber import Subscriber
from wallets.changes import DAPP_PREFIX
from wallets.models import Dapp

Callback = Callable[[], None]
"""Called when data may have changed. It must not block."""


@dataclass(slots=True)
class _User:
    """The subscribers of one wallet user.

    end: ends the subscription to the user's stream.
    is_followed: the first position of the stream is known.
    """

    end: Callable[[], None]
    is_followed: bool = False
    dapps: dict[int, set[Callback]] = field(default_factory=dict)
    pages: set[Callback] = field(default_factory=set)


class Watch:
    """Calls the subscribers of the dapp or user that has changed.

    All subscribers of a user are called when changes may have been missed. Those of dapps
    are also called when the first changes can be reported.
    """

    def __init__(self, subscriber: Subscriber) -> None:
        self._subscriber = subscriber
        self._users: dict[int, _User] = {}

    def subscribe_dapp(self, dapp: Dapp, callback: Callback) -> Callable[[], None]:
        """Call `callback` whenever a dapp's session, requests or tokens have changed.

        Returns: a function that ends the subscription.
        """
        user = self._user(dapp.user_id)
        user.dapps.setdefault(dapp.pk, set()).add(callback)

        def unsubscribe() -> None:
            left = user.dapps.get(dapp.pk, set())
            left.discard(callback)
            if not left:
                user.dapps.pop(dapp.pk, None)
            self._leave(dapp.user_id, user)

        return unsubscribe

    def subscribe_user(self, user_id: int, callback: Callback) -> Callable[[], None]:
        """Call `callback` whenever something on a user's pages has changed.

        Read the pages after `follow_user`, because earlier changes are not reported.
        Returns: a function that ends the subscription.
        """
        user = self._user(user_id)
        user.pages.add(callback)

        def unsubscribe() -> None:
            user.pages.discard(callback)
            self._leave(user_id, user)

        return unsubscribe

    async def follow_user(self, user_id: int) -> None:
        """Wait until all later changes of a subscribed user are reported."""
        await self._subscriber.catch_up([wallet(user_id)])

    def notify_all(self) -> None:
        """Call all subscribers."""
        for user_id in list(self._users):
            self._reload(user_id)

    def _user(self, user_id: int) -> _User:
        found = self._users.get(user_id)
        if found is None:
            end = self._subscriber.subscribe(
                wallet(user_id),
                lambda subject: self._changed(user_id, subject),
                lambda: self._reload(user_id),
            )
            found = self._users[user_id] = _User(end)
        return found

    def _leave(self, user_id: int, user: _User) -> None:
        if not user.dapps and not user.pages and self._users.get(user_id) is user:
            del self._users[user_id]
            user.end()

    def _changed(self, user_id: int, subject: str) -> None:
        user = self._users.get(user_id)
        if user is None:
            return
        if subject == ACCOUNT:
            self._reload(user_id)
            return
        if subject.startswith(DAPP_PREFIX):
            _call(user.dapps.get(int(subject.removeprefix(DAPP_PREFIX)), ()))
        _call(user.pages)

    def _reload(self, user_id: int) -> None:
        user = self._users.get(user_id)
        if user is None:
            return
        for callbacks in list(user.dapps.values()):
            _call(callbacks)
        if user.is_followed:
            _call(user.pages)
        user.is_followed = True


def _call(callbacks: Iterable[Callback]) -> None:
    for callback in list(callbacks):
        callback()
