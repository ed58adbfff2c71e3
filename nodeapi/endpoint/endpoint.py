"""Node requests: from an HTTP request to its response.

A request is checked in the order of what a check costs: path, method, media type, length,
key, network, body. Successful requests are not logged here.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns

from django.conf import settings

from jsonrpc.dispatch import Limits
from jsonrpc.errors import (
    BodyTooLarge,
    BodyTooSlow,
    MethodNotAllowed,
    RpcError,
    TooManyConnections,
    UnsupportedContentEncoding,
    UnsupportedMediaType,
)
from jsonrpc.later import Later
from jsonrpc.registry import MethodRegistry
from keys.errors import KeyRequired
from keys.grants import Grant
from keys.site import site_of
from nodeapi.endpoint.access import Access, read_path
from nodeapi.endpoint.calls import Calls
from nodeapi.endpoint.responses import PREFLIGHT, respond
from nodeapi.errors.access import UnknownPath
from nodeapi.methods import registry
from nodeapi.methods.context import Context
from nodeapi.node import Node, build_node
from server import request as http
from server.request import Request, Response
from server.request_id import RequestId

MAX_REFUSED_BODY_BYTES = 2**16
"""Most bytes read from the body of a rejected request, for the ids of its calls."""

_MEDIA_TYPES = {
    b"application/json",
    b"application/json-rpc",
    b"application/jsonrequest",
}

_UNREAD = (
    UnknownPath,
    MethodNotAllowed,
    UnsupportedContentEncoding,
    UnsupportedMediaType,
    BodyTooLarge,
    BodyTooSlow,
)
"""Errors of requests whose bodies are not read."""


class Endpoint:
    """The handler (`server.request.Handler`) of `POST [/<network>]/v3[/<key>]`.

    max_body_bytes: longer bodies are rejected.
    """

    def __init__(
        self,
        node: Node,
        registry: MethodRegistry,
        *,
        limits: Limits,
        max_body_bytes: int,
    ) -> None:
        self.access = Access(node)
        self.calls = Calls(registry, limits)
        self._node = node
        self._resolve = self.access.resolve
        self._store = node.store
        self._tracing = node.tracing
        self._relay = node.relay
        self._filters = node.filters
        self._values = node.values
        self._limiter = node.limiter
        self._meter = node.meter
        self._respond = self.calls.respond
        self._body_seconds = limits.seconds
        self._max_body_bytes = max_body_bytes

    async def start(self) -> None:
        """Open the connections of the node."""
        await self._node.start()

    async def stop(self) -> None:
        """Close the connections of the node."""
        await self._node.stop()

    def __call__(self, request: Request) -> Later[Response | None]:
        """Answer a request. The result is None if the client has disconnected."""
        request_id = RequestId(request.headers.get(b"x-request-id"))
        try:
            slug, key = self._read(request)
            grant = self._resolve(key, request.client)
            if grant.is_done and grant.error is None:
                response = self._answer(request, request_id, slug, grant.value)
            else:
                response = grant.then(partial(self._answer, request, request_id, slug))
        except Exception as error:
            return self._refuse(request, request_id, Later.failed(error))
        if response.is_done and response.error is None:
            return response
        return response.handle(partial(self._refuse, request, request_id))

    def _read(self, request: Request) -> tuple[str, str]:
        """Return the slug and the key of a request whose headers are acceptable.

        Raises: UnknownPath, MethodNotAllowed, UnsupportedMediaType,
            UnsupportedContentEncoding, BodyTooLarge, KeyRequired.
        """
        headers = request.headers
        slug, key = read_path(request.path, headers)
        if request.method != "POST":
            raise MethodNotAllowed
        content_type = headers.get(b"content-type", b"")
        if (
            content_type != b"application/json"
            and content_type.split(b";")[0].strip().lower() not in _MEDIA_TYPES
        ):
            raise UnsupportedMediaType
        encoding = headers.get(b"content-encoding")
        if encoding is not None and encoding.lower() != b"identity":
            raise UnsupportedContentEncoding
        if _is_longer(request, self._max_body_bytes):
            raise BodyTooLarge(self._max_body_bytes)
        if not key:
            raise KeyRequired
        return slug, key

    def _answer(
        self, request: Request, request_id: RequestId, slug: str, grant: Grant
    ) -> Later[Response | None]:
        """Answer a request whose key is valid."""
        context = self._authorize(grant, slug, request, request_id)
        body = request.body
        if body is None:
            reading = request.read_body(self._max_body_bytes, self._body_seconds)
            return Later.from_future(reading).then(
                partial(self._answer_body, request, context)
            )
        return self._answer_body(request, context, body)

    def _answer_body(
        self, request: Request, context: Context, body: bytes
    ) -> Later[Response | None]:
        """Answer the body of an authorized request."""
        if len(body) > self._max_body_bytes:
            raise BodyTooLarge(self._max_body_bytes)
        answer = self._respond(body, context, request.disconnected)
        response = answer.then(respond, request, context.request_id, context.grant)
        if b"origin" in request.headers:
            return response.then(partial(_with_credits, context))
        return response

    def _authorize(
        self, grant: Grant, slug: str, request: Request, request_id: RequestId
    ) -> Context:
        """Check that a key grants access to the request's network.

        Raises: UnknownNetwork, NetworkNotEnabled, TooManyConnections; see
            `Allowlists.require_client`.
        """
        network = self.access.network(grant, slug, request.headers, request.client)
        if not request.claim(grant.api_key_id, request.client):
            error = TooManyConnections("API key or address")
            self._meter.fail(grant.api_key_id, network.id, "", error)
            raise error
        context = Context(
            request_id,
            grant,
            network,
            self._store,
            self._tracing,
            self._limiter,
            self._meter,
            perf_counter_ns(),
            self._relay,
            self._filters,
            request.headers,
            values=self._values,
        )
        if request.note is not None:
            request.note.admitted(context)
        return context

    def _refuse(
        self, request: Request, request_id: RequestId, failed: Later[Response | None]
    ) -> Later[Response | None]:
        """Return the response to a request that failed before a method was called."""
        cause = failed.error
        if cause is None:
            return failed
        if isinstance(cause, http.ClientDisconnected):
            return Later(None)
        if isinstance(cause, MethodNotAllowed) and request.method == "OPTIONS":
            return respond(PREFLIGHT, request, request_id, None)
        error = self.access.refusal(self._translated(cause), request.client, request_id)
        cause.__traceback__ = None  # see `Access.refusal`
        if request.note is not None:
            request.note.refused(request_id, error)
        body: Later[bytes]
        if isinstance(error, _UNREAD) or _is_longer(request, MAX_REFUSED_BODY_BYTES):
            body = Later(b"")
        elif request.body is not None:
            body = Later(request.body)
        else:
            reading = request.read_body(MAX_REFUSED_BODY_BYTES, self._body_seconds)
            body = Later.from_future(reading)
        return body.handle(partial(self._refuse_body, request, request_id, error))

    def _refuse_body(
        self,
        request: Request,
        request_id: RequestId,
        error: RpcError,
        body: Later[bytes],
    ) -> Later[Response | None]:
        """Return an error response with the ids of the calls in the body.

        If the body is too long or too slow, the id is null.
        """
        if isinstance(body.error, http.ClientDisconnected):
            return Later(None)
        text = b"" if body.error is not None else body.result()
        if len(text) > MAX_REFUSED_BODY_BYTES:
            text = b""
        answer = self.calls.refuse(text, error, site_of(request.headers))
        return respond(answer, request, request_id, None)

    def _translated(self, error: BaseException) -> BaseException:
        """Return the JSON-RPC error for a body that the server did not accept."""
        if isinstance(error, http.BodyTooLarge):
            return BodyTooLarge(self._max_body_bytes)
        if isinstance(error, http.BodyTooSlow):
            return BodyTooSlow()
        return error


def _with_credits(context: Context, response: Response | None) -> Response | None:
    """Add the credits that a request has cost, for pages such as the console."""
    if response is not None:
        credits = (b"x-credits", b"%d" % context.spent)
        response.headers = [*response.headers, credits]
    return response


def _is_longer(request: Request, limit: int) -> bool:
    """Return whether the body, or its declared length, exceeds a number of bytes."""
    if request.body is not None:
        return len(request.body) > limit
    # The server has checked that this is a number of 64 bits, after any zeros.
    length = request.headers.get(b"content-length")
    return length is not None and int(length.lstrip(b"0") or 0) > limit


def build_endpoint(node: Node | None = None) -> Endpoint:
    """Return the endpoint for `/v3`, with the project's database.

    node: the node to share with other parts. If None, a new one is created.
    """
    limits = Limits(
        batch_calls=settings.NODEAPI_MAX_BATCH_CALLS,
        response_bytes=settings.NODEAPI_MAX_BATCH_RESPONSE_BYTES,
        in_progress_bytes=settings.NODEAPI_BATCHES_IN_PROGRESS_BYTES,
        seconds=settings.NODEAPI_REQUEST_TIMEOUT,
        slow_seconds=settings.NODEAPI_SLOW_REQUEST_TIMEOUT,
    )
    return Endpoint(
        build_node() if node is None else node,
        registry,
        limits=limits,
        max_body_bytes=settings.NODEAPI_MAX_BODY_BYTES,
    )
