"""URLs of upstreams without their secrets, for lists, logs and errors."""

from __future__ import annotations

from urllib.parse import urlsplit


def mask_url(url: str) -> str:
    """Return a URL's scheme, host and port, followed by `/…` if the URL has more parts.

    Keys of node providers are in the user information, the path or the query. The result
    is `…` for a text that is not a URL.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "…"
    if not parts.scheme or not host:
        return "…"
    name = f"[{host}]" if ":" in host else host
    shown = f"{parts.scheme}://{name}" + ("" if port is None else f":{port}")
    has_more = "@" in parts.netloc or parts.path.strip("/")
    has_more = has_more or parts.query or parts.fragment
    return f"{shown}/…" if has_more else shown
