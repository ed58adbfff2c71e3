"""A limit for the open connections of each owner: an API key, or a client's address."""

from __future__ import annotations

from collections.abc import Hashable


class ConnectionLimit:
    """Counts the open connections of each owner.

    most: maximum number of concurrent connections of one owner.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[Hashable, int] = {}

    def take(self, owner: Hashable) -> bool:
        """Count another connection. Return False, without counting it, above the limit.

        owner: None for a connection without owner, which is not limited.
        """
        if owner is None:
            return True
        count = self._open.get(owner, 0)
        if count >= self._most:
            return False
        self._open[owner] = count + 1
        return True

    def give_back(self, owner: Hashable) -> None:
        """Undo a successful `take`."""
        if owner is None:
            return
        count = self._open[owner] - 1
        if count:
            self._open[owner] = count
        else:
            del self._open[owner]
