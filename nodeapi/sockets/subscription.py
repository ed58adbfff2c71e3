"""One eth_subscribe of a socket, from its response until it ends."""

from __future__ import annotations

import secrets

from nodeapi.frames.close_codes import SUBSCRIPTION_FAILED
from nodeapi.frames.writer import FrameWriter
from nodeapi.logs.filter import LogSelection

MAX_HELD_BYTES = 4 * 2**20
"""Results that are held back for a response. A batch with slow calls can be answered
minutes after its eth_subscribe; with more results by then, the socket is closed."""


class Subscription:
    """Sends results to a client, in notifications with the subscription's id.

    writer: of the socket.
    logs: the logs to send; None for other kinds than logs.
    """

    def __init__(self, writer: FrameWriter, logs: LogSelection | None) -> None:
        self.id = "0x" + secrets.token_hex(16)
        self.writer = writer
        self.logs = logs
        self.is_open = True
        self._before, self._behind = self.frame()
        self._held: list[bytes] | None = []
        self._held_bytes = 0

    def frame(self) -> tuple[bytes, bytes]:
        """Return the parts of a notification before and after its result."""
        return (
            b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"'
            + self.id.encode()
            + b'","result":',
            b"}}",
        )

    def begin(self) -> None:
        """Send the held results, and later ones at once.

        Call it when the response with the subscription's id was written.
        """
        held, self._held = self._held or [], None
        for result in held:
            self.send(result)

    def send(self, result: bytes) -> None:
        """Send a result, as JSON; does nothing after `end`."""
        if not self.is_open:
            return
        if self._held is None:
            self.write(self._before + result + self._behind)
            return
        self._held.append(result)
        self._held_bytes += len(result)
        if self._held_bytes > MAX_HELD_BYTES:
            self.writer.close(SUBSCRIPTION_FAILED, "too many events during a batch")

    def write(self, frame: bytes) -> None:
        """Write a notification to the client."""
        self.writer.send(frame)

    def end(self) -> None:
        """End the subscription: results that come later are not sent."""
        self.is_open = False
