"""Why WebSockets are closed, for the page of errors."""

from __future__ import annotations

from guide.error_entries import CodedError, Section
from nodeapi.frames import close_codes

_CLOSES = [
    CodedError(
        close_codes.NOT_TEXT,
        "",
        "When a dapp sends the wallet a binary frame.",
        "Send text frames.",
    ),
    CodedError(
        close_codes.REJECTED,
        "",
        "When a handshake is rejected by a server that can't send an HTTP response to it, "
        "or a client sends a frame to a socket that accepts none.",
        "Check the key and the path. The same request over HTTP returns the reason.",
    ),
    CodedError(
        1009,
        "",
        "When a frame is longer than 1 MiB.",
        "Send long bodies, such as transactions with many blobs, over HTTP.",
    ),
    CodedError(
        close_codes.SUBSCRIPTION_FAILED,
        "",
        "When a subscription can't deliver every event, or pings are not answered.",
        "Connect and subscribe again, and read the missed blocks with calls.",
    ),
    CodedError(
        1012,
        "",
        "When a process of the service restarts.",
        "Connect and subscribe again.",
    ),
    CodedError(
        close_codes.SLOW_READER,
        "",
        "When the client does not read what it has requested.",
        "Read faster, or use fewer subscriptions on a socket.",
    ),
    CodedError(
        close_codes.REVOKED,
        "",
        "When the key, token or log-in of the socket is no longer valid, or no longer "
        "permits what the socket does.",
        "Connect with a valid key. Dapps ask the user for a new session.",
    ),
    CodedError(
        close_codes.TOO_FAST,
        "",
        "When calls continue although they are rejected, or the key has no credits left "
        "for notifications.",
        "Wait until the key has credits again, and send fewer calls at a time.",
    ),
]


def socket_closes() -> Section:
    """Return the close codes of all WebSockets, sorted by code."""
    text = (
        "These are not JSON-RPC errors: the service closes a WebSocket with one of these "
        "codes. Codes below 4000 are those of RFC 6455."
    )
    return Section("closes", "Closed WebSockets", text, sorted(_CLOSES))
