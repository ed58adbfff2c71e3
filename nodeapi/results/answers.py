"""Types of results."""

from __future__ import annotations

from jsonrpc.later import Later
from jsonrpc.stream import Stream

Document = Later[bytes | None]
"""JSON; None if there is no such block or transaction."""

Answer = bytes | Stream
"""JSON. A long result is a stream."""

MaybeAnswer = Later[Answer | None]
"""None if there is no such block or transaction."""
