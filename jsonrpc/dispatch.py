"""Dispatch: from the bytes of a request to the bytes of its response."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from jsonrpc.answers import (
    Answer,
    Reply,
    answer_with,
    answerable_id,
    array,
    refusal,
    refuse_all,
    refuse_large_batch,
)
from jsonrpc.batch import Batches
from jsonrpc.calls import (
    Call,
    Context,
    NoAnswer,
    begin_stream,
    count,
    refused,
    wants_no_answer,
)
from jsonrpc.deadlines import Deadlines
from jsonrpc.departure import CallerGone, Gone, stay, unless_gone
from jsonrpc.envelope import (
    NULL,
    around_result,
    has_rounded_id,
    read_id,
    read_method,
)
from jsonrpc.errors import (
    EmptyBatch,
    InternalError,
    InvalidRequest,
    ParseError,
    RpcError,
    unknown_method,
)
from jsonrpc.later import DONE, Later
from jsonrpc.registry import Method, MethodRegistry
from jsonrpc.source import BatchSource, Text
from jsonrpc.stream import Stream
from jsonrpc.text import parse, parse_exactly

logger = logging.getLogger(__name__)

_NO_ANSWER: Later[Answer] = Later(b"")
"""The empty body for notifications, and for callers that have disconnected."""

Prepared = Call | list[Call] | Reply | None
"""A request whose arguments were decoded: a single call, or the calls of a batch. Or the
response, None if there is none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request, with geth's values.

    response_bytes: size of a batch's results. Further calls are rejected.
    in_progress_bytes: memory reserved for the responses of batches in progress. One
        customer can have half of it. Slow batches have half as much, reserved separately.
    seconds: time limit until the response begins.
    slow_seconds: the same for slow methods.
    """

    batch_calls: int = 1000
    response_bytes: int = 25_000_000
    in_progress_bytes: int = 256 * 2**20
    seconds: float = 30.0
    slow_seconds: float = 120.0


class Dispatcher:
    """Answers requests with the results of registered methods.

    translations: class of an exception of lower layers → class of the reported error.
    """

    def __init__(
        self,
        registry: MethodRegistry,
        limits: Limits,
        translations: Mapping[type[Exception], type[RpcError]],
    ) -> None:
        self._find = registry.find
        self._limits = limits
        self._deadlines = Deadlines(limits.seconds)
        self._slow_deadlines = Deadlines(limits.slow_seconds)
        self._translations = translations
        self._batches = Batches(
            self._reported,
            response_bytes=limits.response_bytes,
            in_progress_bytes=limits.in_progress_bytes,
            seconds=limits.seconds,
            slow_seconds=limits.slow_seconds,
        )
        self.batch_sizes: Counter[int] = Counter()
        """Number of batches by number of calls."""

    def respond(
        self, body: bytes, context: Context, gone: Gone = stay
    ) -> Later[Answer]:
        """Answer a request. The result is complete if no I/O is needed.

        gone: completes when the caller has disconnected. Slow methods are cancelled
            then, and the response is empty.
        """
        return self.answer(self.prepare(body, context), context, gone)

    def prepare(self, body: bytes, context: Context) -> Prepared:
        """Parse a request, and decode the arguments of its calls.

        This takes long for a long body, and may be done in a thread.
        """
        call = Call()
        message = None
        try:
            message = parse(body)
            if type(message) is not dict:
                return self._prepare_batch(message, body, context)
            if type(message.get("id")) is float:  # which parsing may have rounded
                message = parse_exactly(body)
            self._prepare(call, message, context, body.decode)
        except Exception as error:
            if wants_no_answer(error, message):
                return None
            call.error = self._reported(error, call, context)
        return call

    def answer(
        self, prepared: Prepared, context: Context, gone: Gone = stay
    ) -> Later[Answer]:
        """Answer a prepared request; see `respond`."""
        if type(prepared) is Call:
            charged = context.charge(prepared.credits)
            if charged is DONE:
                return self._answer(prepared, context, gone)
            return charged.handle(
                partial(self._answer_if_charged, prepared, context, gone)
            )
        if type(prepared) is list:
            return Later.from_coroutine(self._answer_batch(prepared, context, gone))
        return Later(prepared) if type(prepared) is Reply else _NO_ANSWER

    def prepare_call(self, name: str, params: object, context: Context) -> Call:
        """Decode the arguments of a single call, which may be done in a thread.

        params: as in a request.
        """
        message = {"jsonrpc": "2.0", "id": 1, "method": name, "params": params}
        call = self._prepare_one_of_many(message, context, _no_text)
        assert call is not None  # it has an id
        return call

    async def call(self, call: Call, context: Context, room: int) -> bytes:
        """Return the result of a prepared call as JSON, without a JSON-RPC response.

        The call is charged, limited and recorded like a batch of one call.
        room: maximum size of the result in bytes.

        Raises: RpcError.
        """
        try:
            await context.charge(call.credits)
        except RpcError as error:
            call.credits = 0
            refused(call, error, context)
            raise
        return await self._batches.result(call, room, context)

    def refuse(self, body: bytes, error: RpcError, site: str) -> Reply:
        """Reject a whole request with an error.

        Each call of a batch gets the error, because clients match responses by position
        or id.
        site: base URL of the links in the error.
        """
        try:
            message = parse(body)
            messages = message if type(message) is list else [message]
            if any(map(has_rounded_id, messages[: self._limits.batch_calls])):
                message = parse_exactly(body)
        except ParseError:
            return refusal(NULL, error, site)
        if type(message) is not list:
            return refusal(answerable_id(message) or NULL, error, site)
        if len(message) > self._limits.batch_calls:
            return refuse_large_batch(message, self._limits.batch_calls)
        answers = refuse_all(filter(None, map(answerable_id, message)), error, site)
        if not answers:
            return refusal(NULL, error, site)
        return Reply(error.http_status, array(answers), error.headers)

    def _prepare(
        self, call: Call, message: dict[str, Any], context: Context, text: Text
    ) -> None:
        """Look up a message's method, decode its arguments and check the permission.

        text: the source text of the message.

        Raises: NoAnswer, RpcError.
        """
        call_id = read_id(message)
        if call_id is not None:
            call.id = call_id
        name = call.name = read_method(message)
        if call_id is None:
            raise NoAnswer
        method = self._find(name)
        if method is None:
            raise unknown_method(name)
        call.method = method
        if method.capability is not None:
            context.authorise(method)
        if method.is_slow:
            call.is_slow = True
        signature, params = method.signature, message.get("params")
        if signature.reads_text:
            call.arguments = signature.decode(params, text)
        else:
            call.arguments = signature.decode(params)
        call.credits = method.credits

    def _answer_if_charged(
        self, call: Call, context: Context, gone: Gone, charged: Later[None]
    ) -> Later[Answer]:
        """Answer a single call if its credits could be charged."""
        error = charged.error
        if error is None:
            return self._answer(call, context, gone)
        if not isinstance(error, RpcError):
            return Later.failed(error)
        call.credits = 0
        return self._refuse(call, error, context)

    def _answer(self, call: Call, context: Context, gone: Gone) -> Later[Answer]:
        """Answer a single call whose credits have been charged."""
        method = call.method
        if call.error is not None or method is None:
            return self._refuse(call, call.error or InternalError(), context)
        value = method.start(context, call.arguments)
        if value.is_done:
            return self._finish(call, method, context, value)
        if call.is_slow:
            unless_gone(value, gone)
        return self._finish_in_time(call, method, context, value)

    def _finish_in_time(
        self, call: Call, method: Method, context: Context, value: Later[Any]
    ) -> Later[Answer]:
        """Answer a single call after I/O, or when its time limit is reached."""
        deadlines = self._slow_deadlines if call.is_slow else self._deadlines
        value = deadlines.limit(value.then(_begin_streaming))
        return value.handle(partial(self._finish, call, method, context))

    def _finish(
        self, call: Call, method: Method, context: Context, value: Later[Any]
    ) -> Later[Answer]:
        """Answer a single call with the value or error of its handler."""
        error = value.error
        if error is None:
            result = value.value
            try:
                if type(result) is not Stream:
                    body = answer_with(call.id, method.encode(result))
                    answer: Answer = body
                    size = len(body)
                elif result.is_begun:
                    size = result.size
                    answer = result.enclose(*around_result(call.id))
                else:
                    return self._finish_in_time(call, method, context, value)
            except Exception as caught:
                error = caught
            else:
                context.book(method.name, call.credits, size, None)
                return Later(answer)
        if isinstance(error, CallerGone):
            return _NO_ANSWER
        if not isinstance(error, Exception):
            return Later.failed(error)
        return self._refuse(call, self._reported(error, call, context), context)

    def _refuse(self, call: Call, error: RpcError, context: Context) -> Later[Answer]:
        """Answer a single call with an error."""
        reply = refusal(call.id, error, context.site)
        call.error = error
        count(call, len(reply.body), context)
        return Later(reply)

    def _reported(self, error: Exception, call: Call, context: Context) -> RpcError:
        """Return the error that is reported to the caller."""
        if isinstance(error, RpcError):
            reported = error
        else:
            reported = self._translated(error, call, context)
        # The traceback's frames may refer to the call, which refers to the error: a
        # reference cycle, which only the garbage collector would free.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        return reported

    def _translated(self, error: Exception, call: Call, context: Context) -> RpcError:
        for known, reported in self._translations.items():
            if isinstance(error, known):
                return reported()
        logger.error(
            "%s crashed in request %s",
            call.name,
            context.request_id,
            exc_info=error,
        )
        return InternalError()

    def _prepare_batch(
        self, messages: Any, body: bytes, context: Context
    ) -> list[Call] | Reply:
        """Prepare a body that is not a single JSON object.

        The parsed messages are freed before the calls are answered, because parsed JSON
        may take forty times the memory of the body.

        Raises: RpcError if the body is not an array, or is an empty one.
        """
        if type(messages) is not list:
            raise InvalidRequest
        if not messages:
            raise EmptyBatch
        if any(map(has_rounded_id, messages[: self._limits.batch_calls])):
            messages = parse_exactly(body)
        if len(messages) > self._limits.batch_calls:
            return refuse_large_batch(messages, self._limits.batch_calls)
        self.batch_sizes[len(messages)] += 1
        source = BatchSource(body)
        prepared = (
            self._prepare_one_of_many(message, context, partial(source.message, index))
            for index, message in enumerate(messages)
        )
        return [call for call in prepared if call is not None]

    def _prepare_one_of_many(
        self, message: object, context: Context, text: Text
    ) -> Call | None:
        """Prepare a call of a batch. Return None if the message gets no response."""
        call = Call()
        try:
            if type(message) is not dict:
                raise InvalidRequest
            self._prepare(call, message, context, text)
        except Exception as error:
            if wants_no_answer(error, message):
                return None
            call.error = self._reported(error, call, context)
        return call

    async def _answer_batch(
        self, calls: list[Call], context: Context, gone: Gone
    ) -> Answer:
        """Answer the calls of a batch in order, if all their credits can be charged."""
        try:
            # All or nothing, so that the whole request can be repeated.
            await context.charge(sum(call.credits for call in calls))
            answers = await self._batches.answer(calls, context, gone)
        except CallerGone:
            return b""
        except RpcError as error:
            for call in calls:
                call.credits = 0
            answers = [refused(call, error, context) for call in calls]
            return Reply(error.http_status, array(answers), error.headers)
        return array(answers) if answers else b""


def _no_text() -> None:
    """Return None, in place of the source text of a message."""


def _begin_streaming(value: Any) -> Any:
    """Return a handler's value.

    For a stream, wait until its first bytes are available.
    """
    if type(value) is Stream:
        return Later.from_coroutine(begin_stream(value))
    return value
