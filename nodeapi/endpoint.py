"""The HTTP edge of `/v3`: from an ASGI request to its answer.

A request is checked in the order of what a check costs: HTTP method, media type, length,
key, network, body. Nothing here is logged per request, and nothing knows Django: these
few microseconds, on top of what the server takes, are the price of an answer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import perf_counter_ns

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
from nodeapi.exchange import AsgiExchange, Exchange, read_body
from nodeapi.guards import guard
from nodeapi.head import Head
from nodeapi.http import Receive, Scope, Send
from nodeapi.methods.context import Context
from nodeapi.ports import Service
from nodeapi.sending import (
    PREFLIGHT,
    answer_headers,
    may_be_compressed,
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


_WHOLE = (bytes, Parts)
"""What a body is; a union would be put together anew for each request."""

_ANSWER = (*_WHOLE, Reply, Stream)
"""What an answer is."""


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
        head, exchange = Head(scope), AsgiExchange(scope, receive, send)
        try:
            slug, key = self._read(head)
        except Exception as error:
            request_id = head.request_id()
            refusal = self._refuse(error, head, exchange, request_id)
            return self._send(refusal, None, head, exchange, request_id)
        return self._answer(head, slug, key, exchange)

    def recognise(self, scope: Scope) -> Callable[[Exchange], Awaitable[None]] | None:
        """Return what answers requests with the head that a scope tells of.

        It does what calling this application does. None for a head that is refused, or
        whose key is not remembered: anybody can send others.
        """
        head = Head(scope)
        try:
            slug, key = self._read(head)
        except RpcError:
            return None
        if not self._service.grants.remembers(key):
            return None
        return partial(self._answer, head, slug, key)

    def _read(self, head: Head) -> tuple[str, str]:
        """Return slug and key of a request, if its head is as it should be.

        Raises: UnknownPath, MethodNotAllowed, UnsupportedMediaType, BodyTooLarge,
            KeyRequired.
        """
        slug, key = head.read_path()
        head.require_json_post(self._max_body_bytes)
        if not key:
            raise KeyRequired
        return slug, key

    def _answer(
        self, head: Head, slug: str, key: str, exchange: Exchange
    ) -> Awaitable[None]:
        """Answer a request whose head is as it should be."""
        request_id = head.request_id()
        try:
            grant = self._resolve(key)
            if not isinstance(grant, Grant):
                admission = self._admit_later(grant, slug, head, exchange, request_id)
                return self._answer_later(admission, head, exchange, request_id)
            context = self._admit(grant, slug, head, exchange, request_id)
            body = exchange.take_body()
            if body is None:
                return self._answer_later(context, head, exchange, request_id)
            if len(body) > self._max_body_bytes:
                raise BodyTooLarge(self._max_body_bytes)
            respond = self._respond[grant.allowlists is None]
            answer = respond(body, context, exchange.receive)
        except Exception as error:
            refusal = self._refuse(error, head, exchange, request_id)
            return self._send(refusal, None, head, exchange, request_id)
        if type(answer) is Pending:
            finish = partial(self._finish, answer, grant, head, exchange, request_id)
            return http.GoOn(answer.future, finish)
        return self._send_now(answer, grant, head, exchange, request_id)

    def _finish(
        self,
        pending: Pending,
        grant: Grant,
        head: Head,
        exchange: Exchange,
        request_id: http.RequestId,
    ) -> Awaitable[None]:
        return self._send_now(pending.finish(), grant, head, exchange, request_id)

    def _send_now(
        self,
        answer: Answer | Awaitable[Answer | None],
        grant: Grant,
        head: Head,
        exchange: Exchange,
        request_id: http.RequestId,
    ) -> Awaitable[None]:
        """Send an answer at once, if it is there and the server can."""
        if isinstance(answer, _WHOLE) and send_at_once(
            answer, grant, head, exchange, request_id
        ):
            return http.DONE
        return self._send(answer, grant, head, exchange, request_id)

    async def _answer_later(
        self,
        context: Context | Awaitable[Context],
        head: Head,
        exchange: Exchange,
        request_id: http.RequestId,
    ) -> None:
        """Answer a request whose key has to be looked up, or whose body is to come."""
        answer: Answer | Awaitable[Answer | None]
        grant = None  # until the request has been let in
        try:
            if not isinstance(context, Context):
                context = await context
            grant = context.grant
            body = await read_body(exchange, self._max_body_bytes, self._deadlines)
            if body is None:
                return
            # Once the body has been read, `receive` waits for the client to hang up.
            respond = self._respond[grant.allowlists is None]
            answer = respond(body, context, exchange.receive)
        except Exception as error:
            answer = self._refuse(error, head, exchange, request_id)
        await self._send(answer, grant, head, exchange, request_id)

    async def _send(
        self,
        answer: Answer | Awaitable[Answer | None],
        grant: Grant | None,
        head: Head,
        exchange: Exchange,
        request_id: http.RequestId,
    ) -> None:
        """Send an answer when it is there; None: there is nobody any more."""
        if not isinstance(answer, _ANSWER):
            awaited = await answer
            if awaited is None:
                return
            answer = awaited
        if isinstance(answer, _WHOLE):
            if send_at_once(answer, grant, head, exchange, request_id):
                return
            answer = bytes(answer)
            if head.is_plain and not may_be_compressed(head, answer):
                await send_plainly(answer, exchange)
                return
        headers = answer_headers(head, request_id, grant)
        if isinstance(answer, Stream):
            await send_as_made(answer, head, headers, exchange)
        else:
            await send_whole(answer, head, headers, exchange, self._deadlines)

    def _admit(
        self,
        grant: Grant,
        slug: str,
        head: Head,
        exchange: Exchange,
        request_id: http.RequestId,
    ) -> Context:
        """Let a request in to the network that it is for, if its key opens that.

        Raises: UnknownNetwork, NetworkNotEnabled; see `Allowlists.require_client`.
        """
        context = Context(
            request_id,
            grant,
            self._network(grant, slug, head),
            self._store,
            self._tracing,
            self._limiter,
            self._meter,
            perf_counter_ns(),
        )
        if exchange.note is not None:
            exchange.note.admitted(context)
        return context

    async def _admit_later(
        self,
        grant: Awaitable[Grant],
        slug: str,
        head: Head,
        exchange: Exchange,
        request_id: http.RequestId,
    ) -> Context:
        known = await self._service.strangers.look_up(head.client, grant)
        return self._admit(known, slug, head, exchange, request_id)

    def _network(self, grant: Grant, slug: str, head: Head) -> NetworkView:
        """Return the network that a request is for, if its key opens it from there."""
        if slug:
            network = self._directory.by_slug(slug)
        else:
            network = self._directory.by_host(head.host)
        if network is None:
            raise UnknownNetwork
        try:
            if not grant.allows_network(network.id):
                raise NetworkNotEnabled(network.slug)
            if grant.allowlists is not None:
                headers = head.headers
                grant.allowlists.require_client(
                    head.client, headers.get(b"origin"), headers.get(b"user-agent")
                )
        except OfKnownKey as error:
            error.api_key_id, error.network_id = grant.api_key_id, network.id
            raise
        return network

    async def _refuse(
        self,
        error: Exception,
        head: Head,
        exchange: Exchange,
        request_id: http.RequestId,
    ) -> Reply | None:
        """Answer a request that was not let in; None when the client has gone."""
        if isinstance(error, MethodNotAllowed) and head.method == "OPTIONS":
            return PREFLIGHT
        if isinstance(error, KeyRevoked):
            self._service.late_uses.note(error.version_id, head.client)
        if isinstance(error, KeyInvalid):
            error = self._service.strangers.failed(head.client) or error
        if isinstance(error, Unavailable):
            error = ServiceUnavailable()
        elif not isinstance(error, RpcError):
            logger.error("request %s crashed", request_id, exc_info=error)
            error = InternalError()
        self.refusals[error.http_status, error.reason] += 1
        if isinstance(error, OfKnownKey) and error.api_key_id and self._meter:
            place = error.api_key_id, error.network_id
            self._meter.refuse(*place, "", error.reason)
        if exchange.note is not None:
            exchange.note.refused(request_id, error)
        body: bytes | None = b""
        if not isinstance(error, _UNREAD):
            # What is too long or too slow for that is answered without its ids.
            with suppress(BodyTooLarge, BodyTooSlow):
                body = await read_body(
                    exchange, MAX_REFUSED_BODY_BYTES, self._deadlines
                )
        return None if body is None else self._dispatcher.refuse(body, error)
