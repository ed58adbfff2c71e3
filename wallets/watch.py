"""Who in this process wants to look when something has changed."""

from __future__ import annotations

from collections.abc import Callable

from postgres.listener import Listener
from wallets.changes import DAPP_CHANNEL, USER_CHANNEL

Look = Callable[[], None]
"""Is called when there may be something new to read; must not block."""


class Watch:
    """Hands announcements on to those whom they concern.

    When the process may have missed some, everybody is asked to look.
    """

    def __init__(self, listener: Listener) -> None:
        self._dapps: dict[int, set[Look]] = {}
        self._users: dict[int, set[Look]] = {}
        listener.listen(DAPP_CHANNEL, lambda payload: _tell(self._dapps, payload))
        listener.listen(USER_CHANNEL, lambda payload: _tell(self._users, payload))
        listener.at_epoch(self._tell_all)

    def follow_dapp(self, dapp_id: int, look: Look) -> Callable[[], None]:
        """Call back when a dapp's session, requests or tokens have changed.

        Returns what ends that.
        """
        return _follow(self._dapps, dapp_id, look)

    def follow_user(self, user_id: int, look: Look) -> Callable[[], None]:
        """Call back when something on a user's pages has changed; likewise."""
        return _follow(self._users, user_id, look)

    def _tell_all(self) -> None:
        for followers in (self._dapps, self._users):
            for key in list(followers):
                _tell(followers, str(key))


def _follow(
    followers: dict[int, set[Look]], key: int, look: Look
) -> Callable[[], None]:
    followers.setdefault(key, set()).add(look)

    def unfollow() -> None:
        looks = followers.get(key, set())
        looks.discard(look)
        if not looks:
            followers.pop(key, None)

    return unfollow


def _tell(followers: dict[int, set[Look]], payload: str) -> None:
    for look in list(followers.get(int(payload), ())):
        look()
