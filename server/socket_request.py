"""A node request of an HTTP connection, and its body while it arrives."""

from __future__ import annotations

import asyncio
from asyncio import Future
from typing import Protocol

from server.account import Account
from server.request import BodyTooLarge, BodyTooSlow, ClientDisconnected, Request

_UNREQUESTED_BYTES = 64 * 1024
"""Reading stops when more bytes than this have arrived before the handler asks."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(Protocol):
    """The interface of a connection for its requests."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    account: Account

    def pause_reading(self) -> None:
        """Stop reading, so that the kernel slows the client down."""

    def resume_reading(self) -> None:
        """Continue reading."""


class SocketRequest(Request):
    """A request on a connection, which passes it the parts of the body.

    connection: None before it is set, and after the request was answered.
    is_started: whether the handler was called.
    is_claimed: whether the request was counted for a key.
    expects_continue: whether the client waits for status 100 before it sends the body.
    """

    connection: Connection | None = None
    expects_continue = False
    is_claimed = False
    is_started = False
    _parts: list[bytes] | None = None
    """Parts of an incomplete body."""
    _size = 0
    """Bytes of the parts."""
    _reader: Future[bytes] | None = None
    _limit = 0
    _timer: asyncio.TimerHandle | None = None
    """Set as long as `_reader` is."""
    _gone: list[Future[None]] | None = None

    def claim(self, key: int, client: str | None) -> bool:
        """Count the connection for a key and an address.

        Return False if one of them has too many connections.
        """
        self.is_claimed = True
        connection = self.connection
        return connection is None or connection.account.claim(key, client)

    def read_body(self, limit: int, seconds: float) -> Future[bytes]:
        """Return the body when it is complete."""
        connection = self.connection
        loop = asyncio.get_running_loop()
        reader: Future[bytes] = loop.create_future()
        if connection is None:
            reader.set_exception(ClientDisconnected())
        elif self.body is not None or self._size > limit:
            self._finish(reader, limit)
        else:
            self._reader, self._limit = reader, limit
            self._timer = loop.call_later(seconds, self._expire)
            if self.expects_continue:
                self.expects_continue = False
                connection.transport.write(_CONTINUE)
            connection.resume_reading()
        return reader

    def disconnected(self) -> Future[None]:
        """Return a new future that completes when the client disconnects."""
        gone: Future[None] = asyncio.get_running_loop().create_future()
        if self.connection is None:
            gone.set_result(None)
        elif self._gone is None:
            self._gone = [gone]
        else:
            self._gone.append(gone)
        return gone

    def receive(self, data: bytes, is_last: bool) -> None:
        """Add a part of the body."""
        self.expects_continue = False
        if is_last and self._parts is None:
            self.body = data
        else:
            parts = self._parts = self._parts or []
            parts.append(data)
            self._size += len(data)
            if is_last:
                self.body = b"".join(parts)
                self._parts = None
        reader = self._reader
        if reader is None:
            if self._size > _UNREQUESTED_BYTES and self.connection and not is_last:
                self.connection.pause_reading()
        elif is_last or self._size > self._limit:
            self._end_reading()
            if not reader.done():
                self._finish(reader, self._limit)

    def end(self) -> None:
        """Release the connection, because the request was answered."""
        if self._reader is not None:
            self._end_reading()
        self.connection = self._parts = None

    def disconnect(self) -> None:
        """Release the connection, because the client has disconnected."""
        reader, gone = self._reader, self._gone
        self.end()
        if reader is not None and not reader.done():
            reader.set_exception(ClientDisconnected())
        for each in gone or ():
            if not each.done():
                each.set_result(None)

    def _finish(self, reader: Future[bytes], limit: int) -> None:
        """Complete the read of the body that the handler waits for."""
        if self.body is None or len(self.body) > limit:
            reader.set_exception(BodyTooLarge())
        else:
            reader.set_result(self.body)

    def _expire(self) -> None:
        reader = self._reader
        self._end_reading()
        if reader is not None and not reader.done():
            reader.set_exception(BodyTooSlow())

    def _end_reading(self) -> None:
        self._reader = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
