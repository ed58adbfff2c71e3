"""How a handshake is answered that opens no socket."""

from __future__ import annotations

from nodeapi.http import Send


async def refuse(send: Send, status: int, why: str) -> None:
    """Answer a handshake with an HTTP status."""
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    start = {"type": "websocket.http.response.start", "status": status}
    await send({**start, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": why.encode()})
