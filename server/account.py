"""The key and the address for which a connection and its buffered bytes are counted."""

from __future__ import annotations

from collections.abc import Callable

from server.bounds import Bounds
from server.memory_bounds import Buffer, Scope


class Account:
    """The share of one connection in the limits of its process.

    peer: address of the other end, which may be a proxy's. None on a Unix socket.
    disconnect: called with the exceeded limit when the connection has to be closed.
    position: returns how many bytes of a body have arrived, or of a response are unread.
    """

    __slots__ = (
        "_address",
        "_bounds",
        "_buffer",
        "_client",
        "_is_open",
        "_key",
        "_peer",
        "_slot_key",
    )

    def __init__(
        self,
        bounds: Bounds,
        peer: str | None,
        disconnect: Callable[[Scope], None],
        position: Callable[[], int],
    ) -> None:
        self._bounds = bounds
        self._peer = peer
        self._buffer = Buffer(disconnect, position)
        self._key: int | None = None
        self._client: str | None = None
        """Owner of the client of the last authorized request."""
        self._slot_key: int | None = None
        self._address: str | None = None
        """Owners of the connection's slots in the connection limits."""
        self._is_open = False

    def open(self) -> bool:
        """Count the connection for its address. Return False if the address has too many."""
        address = self._buffer.address = self._owner_of(self._peer)
        if not self._bounds.of_addresses.take(address):
            return False
        self._address = address
        self._is_open = True
        return True

    def claim(self, key: int, client: str | None) -> bool:
        """Count the connection for the key and the client of an authorized request.

        client: IP address. The connection of a proxy carries requests of many clients.

        Return False if one of them has too many connections.
        """
        if (key == self._key and client == self._client) or not self._is_open:
            return True  # the client may disconnect while its key is looked up
        keys, addresses = self._bounds.of_keys, self._bounds.of_addresses
        address = self._owner_of(client)
        if key != self._slot_key and not keys.take(key):
            return False
        if address != self._address and not addresses.take(address):
            if key != self._slot_key:
                keys.give_back(key)
            return False
        if key != self._slot_key:
            keys.give_back(self._slot_key)
        if address != self._address:
            addresses.give_back(self._address)
        self._slot_key, self._address = key, address
        self._key, self._client = key, client
        self._bounds.buffered.assign(self._buffer, key, address)
        return True

    def assign_to_address(self, client: str | None) -> None:
        """Count bytes for a client's address only, because no key is known yet."""
        self._key = None
        self._bounds.buffered.assign(self._buffer, None, self._owner_of(client))

    def set(self, size: int) -> None:
        """Report how many bytes the connection buffers. May disconnect it."""
        if size != self._buffer.size and self._is_open:
            self._bounds.buffered.set(self._buffer, size)

    def begin(self) -> None:
        """Report that a body or a response has begun."""
        self._bounds.buffered.begin(self._buffer)

    def progress(self) -> None:
        """Record that the client has sent or read bytes, if it has."""
        self._bounds.buffered.progress(self._buffer)

    def close(self) -> None:
        """Stop counting the connection."""
        if not self._is_open:
            return
        self.set(0)
        self._is_open = False
        self._bounds.of_keys.give_back(self._slot_key)
        self._bounds.of_addresses.give_back(self._address)
        self._slot_key = self._address = self._key = None
        # The callbacks refer to the connection, which refers to this object.
        self._buffer = Buffer(_ignore, int)

    def _owner_of(self, client: str | None) -> str | None:
        """Return the owner of a client's connections; None for a proxy itself."""
        if client is None or (client == self._peer and self._bounds.is_proxy(client)):
            return None
        return self._bounds.owner_of(client)


def _ignore(_: Scope) -> None:
    """Do nothing. Replaces the callbacks of a closed connection."""
