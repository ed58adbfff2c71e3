"""Limits of one socket of the node.

Connections and bytes are also counted for the worker, the key and the address, as those of
HTTP clients (`server.bounds`).
"""

from __future__ import annotations

MAX_CALLS = 100
"""Frames with calls of one socket that are in progress. A batch is one frame."""

MAX_CALL_BYTES = 4 * 2**20
"""Bytes of these frames together."""

MAX_SUBSCRIPTIONS = 100
"""Open subscriptions of one socket."""

UNREAD_BYTES = 4 * 2**20
"""Unread bytes of a client, besides one response of the largest size, at which its socket
is closed."""

NOTIFICATION_CREDITS = 1
"""The price of a notification: of a head, of each log."""

LONG_ANSWERS = 4
"""Long results that a process reads concurrently, each up to the size of a batch's
response. They are held in memory, because a frame has to be complete."""
