"""HTTP/1.1 on one connection.

Each request is parsed (`server.reading`). A request for a node path goes to the
application's handler. The first request for any other path hands the connection over to
uvicorn's protocol, starting at that request's first byte. Afterwards this protocol
passes all bytes on, and still enforces the limits.

All limits of connections are enforced by this protocol: header bytes, count and time,
body bytes and time, idle time, pipelined requests, slow readers, buffered bytes, draining.
`server.time_limits` defines the limits of time.

No callback of the event loop parses more than a slice of what a client has sent: one
request, or one part of its body. Connections with bodies in tiny chunks take turns
(`server.turns`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from server.account import Account
from server.kernel import reset, unacknowledged_bytes
from server.process import Process
from server.reading import (
    MAX_PARTS,
    Body,
    Headers,
    HeadersTooLarge,
    MalformedRequest,
    RequestReader,
)
from server.request import Pending, Response, StreamedBody
from server.responses import (
    EXPECTATION_FAILED,
    HEADERS_TOO_LARGE,
    INTERNAL_ERROR,
    MALFORMED,
    ResponseWriter,
    closing_response,
)
from server.socket_request import SocketRequest
from server.time_limits import (
    DISCARD_SECONDS,
    HEADER_SECONDS,
    KEEP_ALIVE_SECONDS,
    REFUSAL_SECONDS,
    StallDetector,
)

logger = logging.getLogger(__name__)

DISCARDED_BYTES = 32 * 2**20
"""Largest rest of a body that is read after the response. Closing a connection with
unread bytes would reset it, and the client would lose the response."""

_PIPELINED_BYTES = 64 * 1024
"""Reading stops when more bytes than this follow a request that is being answered."""


class HttpProtocol(asyncio.Protocol):
    """One connection.

    process: the worker process.
    make_inner: returns a protocol of uvicorn for this connection.
    """

    # Defaults in the class cost nothing for each connection.
    _request: SocketRequest | None = None
    """The request that is being received or answered."""
    _is_first = True
    """Whether no request has been completed yet."""
    _discarded: int | None = None
    """Bytes of a body that arrived after its response. None: not discarding."""
    _inner: Any = None
    """uvicorn's protocol after the handover, otherwise None."""
    _is_page_complete = True
    """Whether uvicorn has received the whole request that it is answering."""
    _answers_page = False
    """Whether uvicorn is answering a request."""
    _stream: asyncio.Task[None] | None = None
    """Sends a response while it is produced."""
    _is_reading_paused = False
    _is_waiting = False
    """Whether the connection waits for its turn, and does not read until then."""
    _is_lost = False
    _refused_at: float | None = None
    """Loop time of a rejection, after which input is ignored."""
    _received = 0
    """Bytes of the request's body that has arrived in several reads."""
    _counts_input = False
    """Whether unparsed input was counted as buffered."""
    _unread = 0
    """Bytes of responses that wait for the client to read, as last reported."""

    def __init__(
        self, process: Process, make_inner: Callable[[HttpProtocol], asyncio.Protocol]
    ) -> None:
        self._process = process
        self._make_inner = make_inner
        self._reader = RequestReader()
        self._stall = StallDetector()

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a new connection, or reject it if its address has too many."""
        process = self._process
        self.transport = transport
        self._writer = ResponseWriter(process, transport)
        self.loop = asyncio.get_running_loop()
        peer = transport.get_extra_info("peername")
        self.peer: str | None = peer[0] if isinstance(peer, tuple) else None
        self._since = self.loop.time()
        """Loop time at which the connection began to wait for its client."""
        process.connections.add(self)
        process.state.connections.add(self)  # type: ignore[arg-type]
        self.account = Account(
            process.bounds, self.peer, self._make_room, self._position
        )
        if not self.account.open():
            self._refuse("connections")

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection's resources."""
        self._is_lost = True
        self._leave()
        self._abandon_request()
        self._writer.lose()
        if self._inner is not None:
            self._inner.connection_lost(exc)
            self._inner = None

    def eof_received(self) -> None:
        """Let the transport close the connection.

        Clients that half-close get no response.
        """

    def pause_writing(self) -> None:
        """Pause producing the response, and count the client's unread bytes."""
        self._writer.pause()
        self._assign_to_client()
        self._unread = self.transport.get_write_buffer_size()
        self.account.begin()
        self._count()
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Continue to produce the response."""
        self._writer.resume()
        self.account.progress()
        self._unread = 0
        self._count()
        if self._inner is not None:
            self._inner.resume_writing()
        else:
            self._read()

    def shutdown(self) -> None:
        """Close the connection once its request is answered, as the process stops."""
        if self._inner is not None:
            return  # the server calls uvicorn's protocol as well
        if self.is_answering or self._discarded is not None:
            self._writer.keeps_alive = False
        else:
            self.transport.close()

    @property
    def is_answering(self) -> bool:
        """Whether a node request is being received or answered."""
        return self._request is not None

    def check_limits(self, now: float) -> None:
        """Enforce the time limits. now: the event loop's time."""
        if self._refused_at is not None:
            if now - self._refused_at >= REFUSAL_SECONDS:
                reset(self.transport)
            return
        waiting = self.transport.get_write_buffer_size()
        if not self._writer.is_paused and waiting != self._unread:
            self._unread = waiting
            self._count()
        if waiting:
            self._disconnect_stalled(now)
            return
        self._stall.end()
        if now - self._since >= self._seconds_to_wait():
            self.transport.close()

    def _disconnect_stalled(self, now: float) -> None:
        """Disconnect a client that has read nothing for too long.

        A proxy's buffers can hide for minutes that its client reads slowly. The proxy
        has its own limit for such clients, and closes this connection when it applies.
        """
        bounds = self._process.bounds
        self.account.progress()
        seconds = self._stall.seconds(self._position(), now)
        if seconds >= bounds.limits.stall_seconds and not (
            self.peer is not None and bounds.is_proxy(self.peer)
        ):
            bounds.disconnected["stalled"] += 1
            reset(self.transport)

    def _seconds_to_wait(self) -> float:
        """Return the seconds for which the connection may wait for its client."""
        if self._discarded is not None:
            return DISCARD_SECONDS
        if self._request is not None:
            return float("inf")  # uvicorn's WebSocket protocol has its own limits
        if self._reader.begun or self._is_first:
            return HEADER_SECONDS
        return float("inf") if self._answers_page else KEEP_ALIVE_SECONDS

    # Requests

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._refused_at is None:
            reader = self._reader
            had_begun = reader.begun
            reader.receive(data)
            self._read()
            if reader.begun and not had_begun and not self._is_first:
                self._since = self.loop.time()

    def _read(self) -> None:
        """Parse a slice of the input, and start its request if it can be answered now."""
        if self._is_lost:
            return
        reader = self._reader
        if self._is_waiting:
            self.transport.pause_reading()  # uvicorn has resumed it
            self._count()
            return
        try:
            while self._may_read() and (event := reader.next_event()):
                if isinstance(event, Body):
                    self._take_body(event)
                    if event.parts >= MAX_PARTS:
                        self._wait_for_turn()
                        break
                    continue
                self._take_headers(event)
                if event.body is not None and self._request is not None:
                    break  # the next one is read after the response
        except HeadersTooLarge:
            self._end_with(HEADERS_TOO_LARGE)
        except MalformedRequest as error:
            logger.warning(MALFORMED)
            text = str(error) or MALFORMED
            self._end_with(closing_response(HTTPStatus.BAD_REQUEST, text))
        if reader.input or reader.begun or self._counts_input:
            self._counts_input = reader.pending > 0
            self._count()  # which may disconnect the client
            if reader.pending > _PIPELINED_BYTES and not self._is_waiting:
                self.pause_reading()
        request = self._request
        if request is not None and not request.is_started:
            request.is_started = True
            self._start(request)

    def _wait_for_turn(self) -> None:
        """Stop reading and parsing until it is this connection's turn."""
        if not (self._is_lost or self.transport.is_closing()):
            self._is_waiting = True
            self.transport.pause_reading()
            self._process.turns.wait(self._take_turn)

    def _take_turn(self) -> None:
        """Parse the next slice of the input."""
        self._is_waiting = False
        if self._is_lost or self.transport.is_closing():
            return
        # uvicorn has its own reason to pause: a body that the application does not read.
        is_paused_by_page = self._inner is not None and self._inner.flow.read_paused
        if not (self._is_reading_paused or is_paused_by_page):
            self.transport.resume_reading()
        self._read()

    def _continue(self) -> None:
        """Read the part of the input that follows a response."""
        if self._reader.pending <= _PIPELINED_BYTES:
            self.resume_reading()
        self.loop.call_soon(self._read)

    def _may_read(self) -> bool:
        """Return whether the next part of the input can be used."""
        request = self._request
        if self._is_lost or self.transport.is_closing():
            return False
        if self._inner is not None:
            return not (self._answers_page and self._is_page_complete)
        if self._discarded is not None:
            return True
        if request is not None:
            return request.body is None
        return not self._writer.is_paused

    def _take_headers(self, found: Headers) -> None:
        """Begin a request, or reject it for an `Expect` header other than 100-continue."""
        headers = found.headers
        expects_continue = b"expect" in headers and found.http_version == "1.1"
        if expects_continue and headers[b"expect"].lower() != b"100-continue":
            self._end_with(EXPECTATION_FAILED)
            return
        process = self._process
        options = process.options
        if self._inner is None:
            path = found.path
            if (
                options.handler is None
                or path is None
                or not options.is_node_path(path)
            ):
                self._inner = self._make_inner(self)
                self._inner.connection_made(self.transport)
        body = found.body
        if self._inner is not None:
            self._is_first = False
            self._answers_page = True
            self._is_page_complete = body is not None
            self._pass_on(found.raw + body if body else found.raw)
            return
        assert path is not None
        client = self.peer
        if b"x-forwarded-for" in headers:
            client = process.proxies.client(client, headers)
        request = self._request = SocketRequest(
            found.method, path, headers, found.http_version, client
        )
        request.connection = self
        self._writer.keeps_alive = found.keeps_alive
        request.body = body
        if body is not None:
            self._is_first = False
        elif expects_continue:
            request.expects_continue = True

    def _take_body(self, body: Body) -> None:
        """Pass a part of a body to its request."""
        if body.is_last:
            self._is_first = False
        if self._inner is not None:
            self._is_page_complete = body.is_last
            if framed := body.framed():
                self._pass_on(framed)
            if self._discarded is None:
                self._received = 0 if body.is_last else self._received + body.size
                self._count()
                return
        if self._discarded is not None:
            self._discard(body)
            return
        request = self._request
        assert request is not None
        request.receive(body.data, body.is_last)
        if not body.is_last:
            self._assign_to_client()
            self._received += len(body.data)
            self.account.progress()
            self._count()

    def _pass_on(self, data: bytes) -> None:
        """Pass bytes to uvicorn's protocol."""
        self._inner.data_received(data)
        if self.transport.get_protocol() is not self and not self._is_lost:
            # It is a WebSocket now, which has its own limits. Clients send nothing
            # before its handshake is complete.
            self._inner = None
            self._is_lost = True
            self._leave()

    def end_page(self) -> None:
        """Continue with the next request after uvicorn has answered the last one."""
        self._answers_page = False
        self._since = self.loop.time()
        if not self._is_page_complete:
            self._discarded = self._received = 0
            self._count()
        if (self._reader.pending or self._is_reading_paused) and not self._is_lost:
            self._continue()

    def _start(self, request: SocketRequest) -> None:
        """Call the handler for a request."""
        handler = self._process.options.handler
        assert handler is not None
        try:
            pending = handler(request)
        except Exception:
            logger.exception("a request crashed")
            self._end_with(INTERNAL_ERROR)
            return
        if pending.is_done:
            self._respond(request, pending)
        else:
            pending.when_done(partial(self._respond, request))

    def _discard(self, body: Body) -> None:
        """Ignore a part of a body whose request was answered."""
        assert self._discarded is not None
        self._discarded += body.size
        if body.is_last:
            self._discarded = None
            self._end_request()
        elif self._discarded > DISCARDED_BYTES:
            self.transport.close()

    def _abandon_request(self) -> None:
        """Stop answering the request, because its client has disconnected."""
        request, self._request = self._request, None
        if request is not None:
            request.disconnect()
        if self._stream is not None:
            self._stream.cancel()

    # Responses

    def _respond(self, request: SocketRequest, pending: Pending) -> None:
        """Send a response."""
        if self._request is not request:
            self._drop(pending)
            return
        try:
            response = pending.result()
        except (Exception, asyncio.CancelledError):
            logger.exception("a request crashed")
            self._end_with(INTERNAL_ERROR)
            return
        if response is None:
            self._end_with(b"")
            return
        body = response.body
        if isinstance(body, bytes):
            self._writer.write(request, response, (body,), len(body))
            self._end_response(request, response)
        elif isinstance(body, tuple):
            self._writer.write(request, response, body, sum(map(len, body)))
            self._end_response(request, response)
        elif self.transport.is_closing():
            # A task would not begin if it was cancelled before its turn.
            self._drop(pending)
        else:
            task = self.loop.create_task(self._send_stream(request, response, body))
            self._stream = task

    def _drop(self, pending: Pending) -> None:
        """Release the body of a response whose client has disconnected."""
        try:
            response = pending.result()
        except BaseException:  # there is no client to report it to
            return
        if response is not None and isinstance(response.body, StreamedBody):
            tasks = self._process.state.tasks
            task = self.loop.create_task(response.body.aclose())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _send_stream(
        self, request: SocketRequest, response: Response, body: StreamedBody
    ) -> None:
        """Send a response while it is produced, and continue with the connection."""
        is_sent = False
        try:
            is_sent = await self._writer.write_stream(request, response, body)
        finally:
            self._stream = None
            await body.aclose()
            if is_sent and not self._is_lost:
                self._end_response(request, response)
            elif not self._is_lost:
                self._end_with(b"")

    def _end_response(self, request: SocketRequest, response: Response) -> None:
        """Continue with the connection after a response."""
        self._process.state.total_requests += 1
        self._request = None
        if self._received:
            self._received = 0
            self._count()
        has_more = request.body is None and not request.expects_continue
        request.end()
        if has_more and response.status != HTTPStatus.REQUEST_TIMEOUT:
            self._discarded = 0
            self._since = self.loop.time()
            self._continue()
        else:
            if has_more:
                self._writer.keeps_alive = False
            self._end_request()

    def _end_request(self) -> None:
        """Continue with the next request, or close the connection."""
        if not self._writer.keeps_alive:
            self.transport.close()
            return
        self._since = self.loop.time()
        reader = self._reader
        if reader.input or reader.begun or self._is_reading_paused:
            self._continue()

    # Limits

    def _assign_to_client(self) -> None:
        """Count bytes for the client's address if the request has no authorized key."""
        request = self._request
        if request is None:
            self.account.assign_to_address(self.peer)
        elif not request.is_claimed:
            self.account.assign_to_address(request.client)

    def _count(self) -> None:
        self.account.set(self._received + self._reader.pending + self._unread)

    def _position(self) -> int:
        """Return the number of bytes received of a body, or unread of a response."""
        waiting = self.transport.get_write_buffer_size()
        if waiting:
            return waiting + unacknowledged_bytes(self.transport)
        return self._received

    def _make_room(self, exceeded: str) -> None:
        """Abort a request or a response because a memory limit is exceeded.

        exceeded: the limit.
        """
        request = self._request
        if self._inner is None and request is not None and request.body is None:
            self._refuse(exceeded)
        else:
            self._process.bounds.disconnected[exceeded] += 1
            reset(self.transport)

    def _refuse(self, exceeded: str) -> None:
        """Send the response for an exceeded limit, and give the client time to read it."""
        self._process.bounds.disconnected[exceeded] += 1
        self._refused_at = self.loop.time()
        self._abandon_request()
        self._reader.take_rest()
        self._received = 0
        self.transport.write(self._process.options.refusals.get(exceeded, b""))
        self.transport.write_eof()
        self.resume_reading()

    def _end_with(self, response: bytes) -> None:
        """Close the connection with a response to the current request.

        response: a complete response. It is not sent if the client might take it for
            the response to another request.
        """
        if self.transport.is_closing():
            return
        may_respond = not (self._answers_page or self._stream)
        if may_respond and self._is_page_complete and self._discarded is None:
            self.transport.write(response)
        self._abandon_request()
        self._reader.take_rest()
        self.transport.close()

    def pause_reading(self) -> None:
        """Stop reading, so that the kernel slows the client down."""
        self._is_reading_paused = True
        self.transport.pause_reading()  # uvicorn may have resumed it

    def resume_reading(self) -> None:
        """Continue reading."""
        if self._is_reading_paused:
            self._is_reading_paused = False
            if not self._is_waiting:
                self.transport.resume_reading()

    def _leave(self) -> None:
        """Remove the connection from the counts."""
        self._process.connections.discard(self)
        self._process.state.connections.discard(self)
        self.account.close()
        self._reader.close()
