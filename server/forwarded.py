"""The client's address behind trusted proxies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class TrustedProxies:
    """Reads X-Forwarded-For as uvicorn does for ASGI applications.

    proxies: addresses and networks, separated by commas; `*` for all.
    """

    def __init__(self, proxies: str) -> None:
        middleware = ProxyHeadersMiddleware(cast(Any, None), proxies)
        self._trusted = middleware.trusted_hosts
        self.is_trusted = lru_cache(4096)(self._is_trusted)
        """Returns whether an address is a trusted proxy's."""

    def _is_trusted(self, address: str) -> bool:
        return address in self._trusted

    def client(self, peer: str | None, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the IP address of the client that sent a request.

        peer: address of the other end of the connection. None on a Unix socket.
        """
        forwarded = headers.get(b"x-forwarded-for")
        if forwarded is None or peer is None or not self.is_trusted(peer):
            return peer
        text = forwarded.decode("latin-1")
        address, _ = self._trusted.get_trusted_client_address(text)
        return address or peer
