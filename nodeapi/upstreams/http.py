"""JSON-RPC requests to an upstream over HTTP."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx
import orjson

from nodeapi.upstreams.address import Address, tls
from nodeapi.upstreams.errors import UpstreamUnavailable
from nodeapi.upstreams.reasons import reason_of

KEEP_ALIVE_SECONDS = 30.0
"""Time for which an idle connection is kept. Load balancers close it after 60 s."""

MAX_RETRY_AFTER = 30.0
"""Upper limit in seconds for an upstream's Retry-After header: the longest backoff."""

_SECONDS = re.compile(r"-?[0-9]+")

NOT_JSON = "the response is not JSON"
NOT_JSON_RPC = "the response is not JSON-RPC"
TOO_LONG = "the response is longer than {} bytes"


class HttpConnections:
    """Keep-alive connections to one upstream.

    httpx's transport is used without its client, which would log each URL. So there are
    no proxies, redirects or cookies either.
    """

    def __init__(
        self, address: Address, connections: int, *, open_seconds: float
    ) -> None:
        """Set the address. The first exchange opens a connection.

        connections: maximum number of open connections.
        open_seconds: time limit of connecting and of the TLS handshake. It should be
            shorter than the time limit of a call, because httpcore does not close the
            socket of a cancelled TLS handshake.
        """
        self._timeout = {"connect": open_seconds}
        self._url = address.url
        self._headers = httpx.Headers(address.headers)
        self._headers["Content-Type"] = "application/json"
        # A compressed response could have any size.
        self._headers["Accept-Encoding"] = "identity"
        self._transport = httpx.AsyncHTTPTransport(
            verify=tls(),
            trust_env=False,
            limits=httpx.Limits(
                max_connections=connections,
                max_keepalive_connections=connections,
                keepalive_expiry=KEEP_ALIVE_SECONDS,
            ),
        )

    async def exchange(
        self, calls: Sequence[dict[str, Any]], max_bytes: int
    ) -> list[Any]:
        """Send calls in one request, as a batch if there are several.

        Return the responses in the upstream's order. They can be any JSON values. There
        is no time limit after connecting.

        Raises: UpstreamUnavailable.
        """
        body = orjson.dumps(calls[0] if len(calls) == 1 else calls)
        try:
            request = httpx.Request(
                *("POST", self._url),
                headers=self._headers,
                content=body,
                extensions={"timeout": self._timeout},
            )
            response = await self._transport.handle_async_request(request)
            async with aclosing(response):
                text = await _read(response, max_bytes)
        except (httpx.HTTPError, OSError, ValueError) as error:
            # ValueError: a host name that can't be encoded. The error's own text may
            # contain the URL.
            raise UpstreamUnavailable(
                reason_of(error),
                is_unreachable=isinstance(error, httpx.ConnectError),
            ) from None
        return _parse(text, response.status_code)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()


async def _read(response: httpx.Response, max_bytes: int) -> bytes:
    """Return the body of a response that may contain JSON-RPC."""
    status = response.status_code
    if status == HTTPStatus.TOO_MANY_REQUESTS or status // 100 in (3, 5):
        # A 5xx may come from a proxy. Its body does not describe the call.
        raise UpstreamUnavailable(
            f"HTTP status {status}",
            status=status,
            retry_after=retry_after(response.headers.get("Retry-After")),
        )
    promised = response.headers.get("Content-Length", "")
    if promised.isdecimal() and int(promised) > max_bytes:
        raise UpstreamUnavailable(TOO_LONG.format(max_bytes))
    found = bytearray()
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > max_bytes:
            raise UpstreamUnavailable(TOO_LONG.format(max_bytes))
    return bytes(found)


def _parse(text: bytes, status: int) -> list[Any]:
    """Return the responses in a body.

    Some nodes send error objects with a 4xx status.
    """
    is_failure = status >= HTTPStatus.BAD_REQUEST
    try:
        found = orjson.loads(text)
    except ValueError:
        reason = f"HTTP status {status}" if is_failure else NOT_JSON
        raise UpstreamUnavailable(reason, status=status) from None
    if is_failure and not (isinstance(found, dict) and "error" in found):
        raise UpstreamUnavailable(f"HTTP status {status}", status=status)
    return found if isinstance(found, list) else [found]


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, None if it is absent or invalid.

    Source: RFC 9110, 10.2.3: seconds or a date
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        seconds = float(value)  # infinite if it has too many digits
    else:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
