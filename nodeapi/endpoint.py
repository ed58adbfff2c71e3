"""The HTTP edge of `/v3`: from an ASGI request to its answer.

A request is checked in the order of what a check costs: HTTP method, media type, length,
key, network, body. Nothing here is logged per request, and nothing knows Django: these
few microseconds, on top of what the server takes, are the price of an answer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import partial
from time import perf_counter_ns
from typing import Any

from asgiref.sync import markcoroutinefunction

from jsonrpc.answers import Answer, Parts, Reply
from jsonrpc.deadlines import Deadlines
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import (
    BodyTooLarge,
    BodyTooSlow,
    InternalError,
    MethodNotAllowed,
    RpcError,
    ServiceUnavailable,
    UnsupportedMediaType,
)
from jsonrpc.pending import Pending
from jsonrpc.registry import MethodRegistry
from jsonrpc.stream import Stream
from keys.errors import (
    KeyInvalid,
    KeyRequired,
    KeyRevoked,
    NetworkNotEnabled,
    OfKnownKey,
)
from keys.grants import Grant
from networks.directory import NetworkView
from nodeapi import http
from nodeapi.errors import UnknownNetwork, UnknownPath
from nodeapi.guards import guard
from nodeapi.http import Receive, Scope, Send
from nodeapi.methods.context import Context
from nodeapi.ports import Service
from nodeapi.sending import (
    PREFLIGHT,
    answer_headers,
    send_as_made,
    send_at_once,
    send_plainly,
    send_whole,
)
from postgres.errors import Unavailable

logger = logging.getLogger(__name__)

MAX_REFUSED_BODY_BYTES = 2**18
"""How much is read of a request that is refused, to echo its ids: work for nobody."""

_UNREAD = (
    UnknownPath,
    MethodNotAllowed,
    UnsupportedMediaType,
    BodyTooLarge,
    BodyTooSlow,
)
"""What is answered without a look into the body."""


_Exchange = tuple[Scope, Mapping[bytes, bytes], http.RequestId, Receive, Send]
"""A request, its headers and name, and its two channels."""

_WHOLE = (bytes, Parts)
"""What a body is; a union would be put together anew for each request."""

_ANSWER = (*_WHOLE, Reply, Stream)
"""What an answer is."""

_NONE: dict[str, Any] = {}
"""The extensions of a server that has none."""


class Endpoint:
    """Answers `POST [/<network>]/v3[/<key>]`; an ASGI application.

    max_body_bytes: what a longer body is refused for.
    """

    def __init__(
        self,
        service: Service,
        registry: MethodRegistry,
        *,
        limits: Limits,
        max_body_bytes: int,
    ) -> None:
        self._service = service
        self._resolve = service.grants.resolve
        self._directory = service.directory
        self._store = service.store
        self._tracing = service.tracing
        self._limiter = service.limiter
        self._meter = service.meter
        translations: dict[type[Exception], type[RpcError]] = {
            Unavailable: ServiceUnavailable
        }
        self._dispatcher = Dispatcher(registry, limits, translations)
        guarded = Dispatcher(guard(registry), limits, translations)
        self._dispatchers = self._dispatcher, guarded
        # By whether the key is without allowlists.
        self._respond = {True: self._dispatcher.respond, False: guarded.respond}
        self._deadlines = Deadlines(limits.seconds)
        self._max_body_bytes = max_body_bytes
        self.refusals: Counter[tuple[int, str]] = Counter()
        """Requests that were not let in, by status and reason: no key is charged."""

    @property
    def batch_sizes(self) -> Counter[int]:
        """Batches so far, by how many calls they had."""
        return sum((each.batch_sizes for each in self._dispatchers), Counter())

    async def start(self) -> None:
        """Open what answering needs."""
        await self._service.start()

    async def stop(self) -> None:
        """Close it again."""
        await self._service.stop()

    @markcoroutinefunction  # or uvicorn takes it for what ASGI 2 was
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request; at once, if it has come and nothing is to be waited for."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request_id = http.RequestId()
        if b"x-request-id" in headers:
            request_id.take(headers[b"x-request-id"])
        extensions = scope.get("extensions", _NONE)
        exchange = scope, headers, request_id, receive, send
        try:
            context = self._admit(scope, headers, request_id)
            take_body = extensions.get(http.WHOLE_BODY)
            if take_body is None or not isinstance(context, Context):
                return self._answer_later(context, *exchange)
            body: bytes | None = take_body()
            if body is None:
                return self._answer_later(context, *exchange)
            if len(body) > self._max_body_bytes:
                raise BodyTooLarge(self._max_body_bytes)
            grant = context.grant
            answer = self._respond[grant.allowlists is None](body, context, receive)
        except Exception as error:
            refusal = self._refuse(error, scope, receive, request_id)
            return self._send(refusal, None, *exchange)
        if type(answer) is Pending:
            finish = partial(self._finish, answer, grant, exchange)
            return http.GoOn(answer.future, finish)
        return self._send_now(answer, grant, exchange)

    def _finish(
        self, pending: Pending, grant: Grant, exchange: _Exchange
    ) -> Awaitable[None]:
        return self._send_now(pending.finish(), grant, exchange)

    def _send_now(
        self,
        answer: Answer | Awaitable[Answer | None],
        grant: Grant,
        exchange: _Exchange,
    ) -> Awaitable[None]:
        """Send an answer at once, if it is there and the server can."""
        scope, headers, request_id, _, _ = exchange
        if isinstance(answer, _WHOLE) and send_at_once(
            answer, grant, scope, headers, request_id
        ):
            return http.DONE
        return self._send(answer, grant, *exchange)

    async def _answer_later(
        self,
        context: Context | Awaitable[Context],
        scope: Scope,
        headers: Mapping[bytes, bytes],
        request_id: http.RequestId,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a request whose key has to be looked up, or whose body is to come."""
        answer: Answer | Awaitable[Answer | None]
        grant = None  # until the request has been let in
        try:
            if not isinstance(context, Context):
                context = await context
            grant = context.grant
            body = await self._read_body(await receive(), receive, self._max_body_bytes)
            if body is None:
                return
            # Once the body has been read, `receive` waits for the client to hang up.
            answer = self._respond[grant.allowlists is None](body, context, receive)
        except Exception as error:
            answer = self._refuse(error, scope, receive, request_id)
        await self._send(answer, grant, scope, headers, request_id, receive, send)

    async def _send(
        self,
        answer: Answer | Awaitable[Answer | None],
        grant: Grant | None,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        request_id: http.RequestId,
        receive: Receive,
        send: Send,
    ) -> None:
        """Send an answer when it is there; None: there is nobody any more."""
        if not isinstance(answer, _ANSWER):
            awaited = await answer
            if awaited is None:
                return
            answer = awaited
        if isinstance(answer, _WHOLE):
            if send_at_once(answer, grant, scope, headers, request_id):
                return
            answer = bytes(answer)
            if http.is_plain(headers, answer):
                await send_plainly(answer, send)
                return
        its_headers = answer_headers(headers, request_id, grant)
        if isinstance(answer, Stream):
            await send_as_made(answer, scope, headers, its_headers, receive, send)
        else:
            await send_whole(
                answer, headers, its_headers, receive, send, self._deadlines
            )

    def _admit(
        self, scope: Scope, headers: Mapping[bytes, bytes], request_id: http.RequestId
    ) -> Context | Awaitable[Context]:
        """Check a request up to its body; at once when its key is remembered.

        Raises: RpcError, Unavailable.
        """
        slug, key = http.split_path(scope["path"])
        http.require_json_post(scope["method"], headers, self._max_body_bytes)
        key = key or http.bearer_key(headers)
        if not key:
            raise KeyRequired
        grant = self._resolve(key)
        if isinstance(grant, Grant):
            network = self._network(grant, slug, scope, headers)
            return self._context(scope, request_id, grant, network)
        return self._admit_later(grant, slug, scope, headers, request_id)

    async def _admit_later(
        self,
        grant: Awaitable[Grant],
        slug: str,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        request_id: http.RequestId,
    ) -> Context:
        known = await self._service.strangers.look_up(http.client_address(scope), grant)
        network = self._network(known, slug, scope, headers)
        return self._context(scope, request_id, known, network)

    def _context(
        self,
        scope: Scope,
        request_id: http.RequestId,
        grant: Grant,
        network: NetworkView,
    ) -> Context:
        context = Context(
            request_id,
            grant,
            network,
            self._store,
            self._tracing,
            self._limiter,
            self._meter,
            perf_counter_ns(),
        )
        note = scope.get(http.NOTE)
        if note is not None:
            note.admitted(context)
        return context

    def _network(
        self, grant: Grant, slug: str, scope: Scope, headers: Mapping[bytes, bytes]
    ) -> NetworkView:
        """Return the network that a request is for, if its key opens it from there."""
        if slug:
            network = self._directory.by_slug(slug)
        else:
            host = headers.get(b"host", b"").decode("latin-1")
            network = self._directory.by_host(host)
        if network is None:
            raise UnknownNetwork
        try:
            if not grant.allows_network(network.id):
                raise NetworkNotEnabled(network.slug)
            if grant.allowlists is not None:
                grant.allowlists.require_client(
                    http.client_address(scope),
                    headers.get(b"origin"),
                    headers.get(b"user-agent"),
                )
        except OfKnownKey as error:
            error.api_key_id, error.network_id = grant.api_key_id, network.id
            raise
        return network

    async def _read_body(
        self, message: Mapping[str, Any], receive: Receive, limit: int
    ) -> bytes | None:
        """Return the whole body, None when the client has gone.

        message: the first one of the request.
        Raises: BodyTooLarge as soon as it is longer than the limit; BodyTooSlow.
        """
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            try:
                with self._deadlines.deadline():
                    return await _read_rest(body, receive, limit)
            except TimeoutError as error:
                raise BodyTooSlow from error
        if len(body) > limit:
            raise BodyTooLarge(limit)
        return None if message["type"] == "http.disconnect" else body

    async def _refuse(
        self,
        error: Exception,
        scope: Scope,
        receive: Receive,
        request_id: http.RequestId,
    ) -> Reply | None:
        """Answer a request that was not let in; None when the client has gone."""
        if isinstance(error, MethodNotAllowed) and scope["method"] == "OPTIONS":
            return PREFLIGHT
        if isinstance(error, KeyRevoked):
            self._service.late_uses.note(error.version_id, http.client_address(scope))
        if isinstance(error, KeyInvalid):
            address = http.client_address(scope)
            error = self._service.strangers.failed(address) or error
        if isinstance(error, Unavailable):
            error = ServiceUnavailable()
        elif not isinstance(error, RpcError):
            logger.error("request %s crashed", request_id, exc_info=error)
            error = InternalError()
        self.refusals[error.http_status, error.reason] += 1
        if isinstance(error, OfKnownKey) and error.api_key_id and self._meter:
            place = error.api_key_id, error.network_id
            self._meter.refuse(*place, "", error.reason)
        note = scope.get(http.NOTE)
        if note is not None:
            note.refused(request_id, error)
        body: bytes | None = b""
        if not isinstance(error, _UNREAD):
            # What is too long or too slow for that is answered without its ids.
            with suppress(BodyTooLarge, BodyTooSlow):
                body = await self._read_body(
                    await receive(), receive, MAX_REFUSED_BODY_BYTES
                )
        return None if body is None else self._dispatcher.refuse(body, error)


async def _read_rest(body: bytes, receive: Receive, limit: int) -> bytes | None:
    """Return a body of which the first part has come, None when the client has gone.

    What it holds is bounded by the limit, however small the parts are.
    Raises: BodyTooLarge.
    """
    whole = bytearray(body)
    while len(whole) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        whole += message.get("body", b"")
        if len(whole) <= limit and not message.get("more_body"):
            return bytes(whole)
    raise BodyTooLarge(limit)
