"""From the bytes of a request to the bytes of its answer."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Mapping
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
    begin_to_stream,
    count,
    is_awaited,
    refused,
    wants_no_answer,
)
from jsonrpc.deadlines import Deadlines
from jsonrpc.departure import CallerGone, Gone, stay, unless_gone
from jsonrpc.envelope import (
    NULL,
    has_rounded_id,
    read_id,
    read_method,
)
from jsonrpc.errors import (
    EmptyBatch,
    InternalError,
    InvalidRequest,
    ParseError,
    RequestTimedOut,
    RpcError,
    unknown_method,
)
from jsonrpc.later import Later
from jsonrpc.pending import Pending
from jsonrpc.registry import Method, MethodRegistry
from jsonrpc.stream import Stream
from jsonrpc.text import parse, parse_exactly

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take; geth's figures.

    response_bytes: of a batch's results, after which the rest is refused.
    seconds: until the answer begins; slow_seconds: where a method is slow.
    """

    batch_calls: int = 1000
    response_bytes: int = 25_000_000
    seconds: float = 30.0
    slow_seconds: float = 120.0


class Dispatcher:
    """Answers requests with what the methods of a registry return.

    translations: errors of what lies below the methods, and what they are told as.
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
            self._told,
            response_bytes=limits.response_bytes,
            seconds=limits.seconds,
            slow_seconds=limits.slow_seconds,
        )
        self.batch_sizes: Counter[int] = Counter()
        """Batches so far, by how many calls they had."""

    def respond(
        self, body: bytes, context: Context, gone: Gone = stay
    ) -> Answer | Awaitable[Answer]:
        """Answer a request, at once when nothing has to be waited for.

        What waits for one future alone is a `Pending`: it can be finished without a task.
        gone: what to wait for to learn that nobody waits for the answer any more; slow
            methods are given up then.
        """
        call = Call()
        message = None
        try:
            message = parse(body)
            if type(message) is not dict:
                return self._respond_to_batch(message, body, context, gone)
            if has_rounded_id(message):
                message = parse_exactly(body)
            self._prepare(call, message, context)
        except Exception as error:
            if wants_no_answer(error, message):
                return b""
            call.error = self._told(error, call, context)
        charged = context.charge(call.credits)
        if charged is None:
            return self._answer(call, context, gone)
        return self._answer_charged(charged, call, context, gone)

    def refuse(self, body: bytes, error: RpcError) -> Reply:
        """Answer a request that is refused as a whole, whatever it asks.

        A batch is answered with the error for each call: clients look their answers up
        by position or id, and a bare object would be found by neither.
        """
        try:
            message = parse(body)
            messages = message if type(message) is list else [message]
            if any(map(has_rounded_id, messages[: self._limits.batch_calls])):
                message = parse_exactly(body)
        except ParseError:
            return refusal(NULL, error)
        if type(message) is not list:
            return refusal(answerable_id(message) or NULL, error)
        if len(message) > self._limits.batch_calls:
            return refuse_large_batch(message, self._limits.batch_calls)
        answers = refuse_all(filter(None, map(answerable_id, message)), error)
        if not answers:
            return refusal(NULL, error)
        return Reply(error.http_status, array(answers), error.headers)

    def _prepare(self, call: Call, message: dict[str, Any], context: Context) -> None:
        """Find out what a message asks for, and whether it may.

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
        call.arguments = method.signature.decode(message.get("params"))
        call.credits = method.credits

    def _answer(
        self, call: Call, context: Context, gone: Gone
    ) -> Answer | Awaitable[Answer]:
        """Carry a single call out, at once when nothing has to be waited for."""
        method = call.method
        if call.error is not None or method is None:
            return self._refuse(call, call.error or InternalError(), context)
        try:
            value = call.value = method.handler(context, *call.arguments)
            if type(value) is bytes or not is_awaited(value):
                answer = answer_with(call.id, method.encode(value))
                context.book(method.name, call.credits, len(answer), None)
                return answer
        except Exception as error:
            return self._refuse(call, self._told(error, call, context), context)
        if type(value) is Later and not call.is_slow:
            finish = partial(self._finish, call, method, context)
            return Pending(value.future, finish, self._deadlines)
        return self._answer_later(call, method, context, gone)

    def _finish(
        self, call: Call, method: Method, context: Context, pending: Pending
    ) -> Answer | Awaitable[Answer]:
        """Answer a single call as soon as the future that it waits for is done."""
        if pending.is_late:
            return self._refuse(call, RequestTimedOut(), context)
        try:
            value = call.value = call.value.take()
            if type(value) is not bytes and is_awaited(value):
                return self._answer_by(pending.when, call, method, context)
            answer = answer_with(call.id, method.encode(value))
        except Exception as error:
            return self._refuse(call, self._told(error, call, context), context)
        context.book(method.name, call.credits, len(answer), None)
        return answer

    async def _answer_by(
        self, when: float, call: Call, method: Method, context: Context
    ) -> Answer:
        """Wait for what a single call has to ask besides, until the loop's time `when`."""
        try:
            async with asyncio.timeout_at(when):
                value = await call.value
            answer = answer_with(call.id, method.encode(value))
        except TimeoutError:
            return self._refuse(call, RequestTimedOut(), context)
        except Exception as error:
            return self._refuse(call, self._told(error, call, context), context)
        context.book(method.name, call.credits, len(answer), None)
        return answer

    async def _answer_charged(
        self, charged: Awaitable[None], call: Call, context: Context, gone: Gone
    ) -> Answer:
        """Carry a single call out if its caller has the credits for it."""
        try:
            await charged
        except RpcError as error:
            call.credits = 0
            return self._refuse(call, error, context)
        answer = self._answer(call, context, gone)
        return await answer if isinstance(answer, Awaitable) else answer

    def _refuse(self, call: Call, error: RpcError, context: Context) -> Reply:
        """Answer a single call with an error."""
        reply = refusal(call.id, error)
        call.error = error
        count(call, len(reply.body), context)
        return reply

    def _told(self, error: Exception, call: Call, context: Context) -> RpcError:
        """Return what the caller is told of an error."""
        if isinstance(error, RpcError):
            told = error
        else:
            told = self._told_as(error, call, context)
        # Tracebacks lead to frames that hold the call, which holds the error, or a future
        # that does: a circle, which only the garbage collector would open.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        return told

    def _told_as(self, error: Exception, call: Call, context: Context) -> RpcError:
        for known, told in self._translations.items():
            if isinstance(error, known):
                return told()
        logger.error(
            "%s crashed in request %s",
            call.name,
            context.request_id,
            exc_info=error,
        )
        return InternalError()

    async def _answer_later(
        self, call: Call, method: Method, context: Context, gone: Gone
    ) -> Answer:
        """Wait for the value of a single call."""
        deadlines = self._slow_deadlines if call.is_slow else self._deadlines
        deadline = deadlines.deadline()
        answer: Answer
        try:
            with deadline:
                value = call.value
                if type(value) is not Stream:
                    value = await (unless_gone(value, gone) if call.is_slow else value)
                if type(value) is Stream:
                    size = value.size
                    answer = await begin_to_stream(call, value)
                else:
                    answer = answer_with(call.id, method.encode(value))
                    size = len(answer)
        except CallerGone:
            return b""
        except Exception as error:
            told = self._told(error, call, context) if not deadline.expired else None
            return self._refuse(call, told or RequestTimedOut(), context)
        context.book(method.name, call.credits, size, None)
        return answer

    def _respond_to_batch(
        self, messages: Any, body: bytes, context: Context, gone: Gone
    ) -> Awaitable[Answer]:
        """Answer what is no object.

        Raises: RpcError when it is no batch either, or an empty one.
        """
        if type(messages) is not list:
            raise InvalidRequest
        if not messages:
            raise EmptyBatch
        if any(map(has_rounded_id, messages[: self._limits.batch_calls])):
            messages = parse_exactly(body)
        return self._answer_batch(messages, context, gone)

    def _prepare_one_of_many(self, message: object, context: Context) -> Call | None:
        """Prepare a call of a batch; None when it wants no answer."""
        call = Call()
        try:
            if type(message) is not dict:
                raise InvalidRequest
            self._prepare(call, message, context)
        except Exception as error:
            if wants_no_answer(error, message):
                return None
            call.error = self._told(error, call, context)
        return call

    async def _answer_batch(
        self, messages: list[object], context: Context, gone: Gone
    ) -> Answer:
        """Answer the calls of a batch in their order, if they can be paid together."""
        if len(messages) > self._limits.batch_calls:
            return refuse_large_batch(messages, self._limits.batch_calls)
        self.batch_sizes[len(messages)] += 1
        prepared = (self._prepare_one_of_many(each, context) for each in messages)
        calls = [call for call in prepared if call is not None]
        try:
            # All or nothing, so that the whole request can be repeated.
            charged = context.charge(sum(call.credits for call in calls))
            if charged is not None:
                await charged
            answers = await self._batches.answer(calls, context, gone)
        except CallerGone:
            return b""
        except RpcError as error:
            for call in calls:
                call.credits = 0
            answers = [refused(call, error, context) for call in calls]
            return Reply(error.http_status, array(answers), error.headers)
        return array(answers) if answers else b""
