"""The calls of a batch carried out, some at a time, within one response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from jsonrpc.calls import Call, Context, answered, refused
from jsonrpc.departure import Gone, unless_gone
from jsonrpc.errors import RequestTimedOut, ResponseTooLarge, RpcError
from jsonrpc.later import Later
from jsonrpc.stream import ResultTooLarge, Stream

_AT_ONCE = 100
"""Calls of a batch that are under way together.

Enough for their look-ups to be merged; few enough that what a batch may read before
its response is found to be full stays bounded.
"""

_SLOW_AT_ONCE = 8
"""Calls of slow methods among them, which read much more."""


class Batches:
    """Answers the calls of batches.

    told: makes what the caller is told of an error.
    response_bytes, seconds, slow_seconds: see `jsonrpc.dispatch.Limits`.
    """

    def __init__(
        self,
        told: Callable[[Exception, Call, Context], RpcError],
        *,
        response_bytes: int,
        seconds: float,
        slow_seconds: float,
    ) -> None:
        self._told = told
        self._response_bytes = response_bytes
        self._seconds = seconds
        self._slow_seconds = slow_seconds

    async def answer(
        self, calls: list[Call], context: Context, gone: Gone
    ) -> list[bytes]:
        """Answer calls that are paid for, a portion at a time. Raises: CallerGone."""
        started = asyncio.get_running_loop().time()
        answers: list[bytes] = []
        left_bytes = self._response_bytes
        rest = iter(calls)
        for portion in self._portions(rest, context):
            deadline = started + self._patience(portion)
            is_late = await self._settle(portion, deadline, context, gone)
            for call in portion:
                if left_bytes < 0:
                    call.error = ResponseTooLarge()
                if type(call.value) is Stream:
                    await self._collect(call, left_bytes, deadline, context)
                result = self._result(call, context)
                left_bytes -= len(result)
                answers.append(answered(call, result, context))
            if left_bytes < 0 or is_late:
                error = ResponseTooLarge() if left_bytes < 0 else RequestTimedOut()
                answers += [refused(call, error, context) for call in rest]
                break
        return answers

    def _begin(self, call: Call, context: Context) -> None:
        """Carry a call of a batch out, unless it was refused."""
        if call.error is None and call.method is not None:
            try:
                call.value = call.method.handler(context, *call.arguments)
            except Exception as error:
                call.error = self._told(error, call, context)

    def _result(self, call: Call, context: Context) -> bytes:
        """Return the result of a call as JSON; b"" when there is an error."""
        if call.error is None and call.method is not None:
            try:
                return call.method.encode(call.value)
            except Exception as error:
                call.error = self._told(error, call, context)
        return b""

    def _portions(
        self, calls: Iterator[Call], context: Context
    ) -> Iterator[list[Call]]:
        """Begin the calls of a batch, some at a time."""
        portion: list[Call] = []
        slow = 0
        for call in calls:
            self._begin(call, context)
            portion.append(call)
            slow += call.is_slow
            if len(portion) == _AT_ONCE or slow == _SLOW_AT_ONCE:
                yield portion
                portion, slow = [], 0
        if portion:
            yield portion

    def _patience(self, calls: list[Call]) -> float:
        """Return the seconds that a batch with these calls may take."""
        is_slow = True in [call.is_slow for call in calls]
        return self._slow_seconds if is_slow else self._seconds

    async def _collect(
        self, call: Call, room: int, deadline: float, context: Context
    ) -> None:
        """Make a call's stream a value, if the response to its batch has room for it.

        room: bytes.
        """
        stream: Stream = call.value
        try:
            if call.error is None and stream.size > room:
                raise ResultTooLarge(stream.size, room, stream.advice)
            if call.error is None:
                async with asyncio.timeout_at(deadline):
                    call.value = await stream.read()
        except TimeoutError:
            call.error = RequestTimedOut()
        except Exception as error:
            call.error = self._told(error, call, context)
        finally:
            await stream.aclose()

    async def _settle(
        self, calls: list[Call], deadline: float, context: Context, gone: Gone
    ) -> bool:
        """Wait until all calls have a value or an error; return whether time is up."""
        loop = asyncio.get_running_loop()
        pending = {
            _future(call.value): call
            for call in calls
            if call.error is None and hasattr(call.value, "__await__")
        }
        if not pending:
            return loop.time() >= deadline
        waiting = asyncio.wait(pending, timeout=deadline - loop.time())
        is_slow = True in [call.is_slow for call in pending.values()]
        try:
            _, late = await (unless_gone(waiting, gone) if is_slow else waiting)
        finally:
            for future in pending:
                future.cancel()  # does nothing to one that is done
        has_more = False
        for future, call in pending.items():
            if future in late or future.cancelled():
                call.error = RequestTimedOut()
                continue
            error = future.exception()
            if error is None:
                has_more |= self._take(call, future, context)
            elif isinstance(error, Exception):
                call.error = self._told(error, call, context)
            else:
                raise error
        if has_more:
            return await self._settle(calls, deadline, context, gone) or bool(late)
        return bool(late)

    def _take(self, call: Call, future: asyncio.Future[Any], context: Context) -> bool:
        """Give a call the value that a future brought; return whether it is another."""
        value = call.value
        try:
            call.value = value.take() if type(value) is Later else future.result()
        except Exception as error:
            call.error = self._told(error, call, context)
        return hasattr(call.value, "__await__") and call.error is None


def _future(value: Awaitable[Any]) -> asyncio.Future[Any]:
    """Return a future that tells when a value is there."""
    return value.future if type(value) is Later else asyncio.ensure_future(value)
