"""Close codes of WebSockets; RFC 6455 defines those below 4000."""

from __future__ import annotations

NOT_TEXT = 1003
"""The client has sent a binary frame."""

UNEXPECTED_FRAME = 1008
"""The client has sent a frame on a socket that reads none."""

REJECTED = 1008
"""The handshake is rejected, on a server that can't send an HTTP response to it."""

SUBSCRIPTION_FAILED = 1011
"""A subscription can't deliver every event that it has promised."""

SLOW_READER = 4008
"""The client does not read the frames that it has asked for."""

REVOKED = 4401
"""The API key, token or log-in with which the socket was opened is no longer valid."""

TOO_FAST = 4429
"""The client continues to send calls although they are rejected, or its API key has no
credits left for notifications."""
