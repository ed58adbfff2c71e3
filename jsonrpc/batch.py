"""Execution of the calls of a batch, several at a time, into one response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from jsonrpc.calls import Call, Context, answered, count, refused
from jsonrpc.departure import Gone, stay, unless_gone
from jsonrpc.errors import InternalError, RequestTimedOut, ResponseTooLarge, RpcError
from jsonrpc.later import Later, when_all_done
from jsonrpc.reservations import Reservations
from jsonrpc.stream import ResultTooLarge, Stream
from jsonrpc.turns import LoopTurns

_AT_ONCE = 100
"""Calls of a batch that are executed concurrently.

The number is high enough to merge their look-ups. It is low enough to bound the data that
a batch reads before its response is found to be full."""

_TURN_CALLS = 25
"""Calls that are started in one turn on the event loop: about a millisecond."""

_SLOW_AT_ONCE = 8
"""Calls of slow methods that are executed concurrently. Each reads much more."""

_LONG_ERROR_BYTES = 2**12
"""Longer errors count as part of the response. They contain data, such as a revert's."""

_Started = tuple[Call, Later[Any] | None]
"""A call and the outcome of its handler. None: it starts after the calls before it."""


class Batches:
    """Answers the calls of batches.

    reported: returns the error that is reported to the caller.
    response_bytes, in_progress_bytes, seconds, slow_seconds: see
        `jsonrpc.dispatch.Limits`.
    """

    def __init__(
        self,
        reported: Callable[[Exception, Call, Context], RpcError],
        *,
        response_bytes: int,
        in_progress_bytes: int,
        seconds: float,
        slow_seconds: float,
    ) -> None:
        self._reported = reported
        self._response_bytes = response_bytes
        self._seconds = seconds
        self._slow_seconds = slow_seconds
        self._turns = LoopTurns()
        self._reservations = Reservations(in_progress_bytes, in_progress_bytes // 2)
        # Slow batches may last for minutes. Others do not wait for them.
        slow_bytes = in_progress_bytes // 2
        self._slow_reservations = Reservations(slow_bytes, slow_bytes // 2)

    async def answer(
        self, calls: list[Call], context: Context, gone: Gone
    ) -> list[bytes]:
        """Answer calls whose credits were charged, and return their response objects.

        Waits until memory for the response is available.

        Raises: CallerGone if the caller has disconnected.
        """
        started = asyncio.get_running_loop().time()
        async with self._admitted(
            calls, self._response_bytes, started, context, gone
        ) as is_admitted:
            if is_admitted:
                return await self._answer_in_portions(calls, started, context, gone)
            late = RequestTimedOut()
            return [refused(call, late, context) for call in calls]

    async def result(self, call: Call, room: int, context: Context) -> bytes:
        """Return the result of a call that was charged, as JSON, and record the call.

        The call waits, and is limited, like the only call of a batch.
        room: maximum size of the result in bytes.

        Raises: the call's error.
        """
        started = asyncio.get_running_loop().time()
        deadline = started + self._patience([call])
        async with self._admitted([call], room, started, context, stay) as is_admitted:
            if not is_admitted:
                refused(call, late := RequestTimedOut(), context)
                raise late
            outcome = _start(call, context)
            await _wait([(call, outcome)], deadline, stay)
            result = await self._result(call, outcome, room, deadline, context, stay)
        count(call, len(result), context)
        if call.error is not None:
            raise call.error
        return result

    @asynccontextmanager
    async def _admitted(
        self,
        calls: list[Call],
        room: int,
        started: float,
        context: Context,
        gone: Gone,
    ) -> AsyncIterator[bool]:
        """Reserve memory for the results of calls; yield False if that takes too long.

        room: maximum size of the results in bytes.
        started: the event loop's time at which the request arrived.

        Raises: CallerGone.
        """
        is_slow = True in [call.is_slow for call in calls]
        reservations = self._slow_reservations if is_slow else self._reservations
        share = 1.0 if is_slow else min(1.0, len(calls) / _AT_ONCE)
        reservation = reservations.reserve(context.customer, int(room * share))
        try:
            yield reservation.admitted is None or await _is_admitted(
                reservation.admitted, started + self._patience(calls), gone
            )
        finally:
            reservations.release(reservation)

    async def _answer_in_portions(
        self, calls: list[Call], started: float, context: Context, gone: Gone
    ) -> list[bytes]:
        """Answer calls in portions. Raises: CallerGone.

        started: the event loop's time at which the request arrived.
        """
        answers: list[bytes] = []
        left_bytes = self._response_bytes
        rest = iter(calls)
        async for portion in self._portions(rest, context):
            deadline = started + self._patience([call for call, _ in portion])
            is_late = await _wait(portion, deadline, gone)
            for call, outcome in portion:
                result = await self._result(
                    call, outcome, left_bytes, deadline, context, gone
                )
                answers.append(answered(call, result, context))
                left_bytes -= len(result)
                if call.error is not None and len(answers[-1]) > _LONG_ERROR_BYTES:
                    left_bytes -= len(answers[-1])
            if left_bytes < 0 or is_late:
                error = ResponseTooLarge() if left_bytes < 0 else RequestTimedOut()
                answers += [refused(call, error, context) for call in rest]
                break
        return answers

    async def _portions(
        self, calls: Iterator[Call], context: Context
    ) -> AsyncIterator[list[_Started]]:
        """Start the calls of a batch, and yield them in portions."""
        portion: list[_Started] = []
        slow = 0
        for number, call in enumerate(calls, 1):
            if number % _TURN_CALLS == 0:
                await self._turns.wait(context.customer)
            portion.append((call, _start(call, context)))
            slow += call.is_slow
            if len(portion) == _AT_ONCE or slow == _SLOW_AT_ONCE:
                yield portion
                portion, slow = [], 0
        if portion:
            yield portion

    def _patience(self, calls: list[Call]) -> float:
        """Return the time limit in seconds of a batch with these calls."""
        is_slow = True in [call.is_slow for call in calls]
        return self._slow_seconds if is_slow else self._seconds

    async def _result(
        self,
        call: Call,
        outcome: Later[Any] | None,
        room: int,
        deadline: float,
        context: Context,
        gone: Gone,
    ) -> bytes:
        """Return a call's result as JSON, or set the call's error.

        outcome: of the call's handler; None to start it now.
        room: bytes left in the response. deadline: the event loop's time.

        Raises: CallerGone.
        """
        if outcome is None:
            outcome = await _in_turn(call, room, deadline, context, gone)
        value = self._value(call, outcome, room, context)
        if type(value) is Stream:
            value = await self._read(call, value, room, deadline, context)
        return self._encode(call, value, context)

    def _value(
        self, call: Call, outcome: Later[Any], room: int, context: Context
    ) -> Any:
        """Return the value of a call's handler, or set the call's error.

        room: bytes left in the response.
        """
        error = outcome.error
        if isinstance(error, asyncio.CancelledError):
            call.error = RequestTimedOut()
        elif isinstance(error, Exception):
            call.error = self._reported(error, call, context)
        elif error is not None:
            raise error
        if room < 0:
            call.error = ResponseTooLarge()
        return outcome.result() if error is None else None

    async def _read(
        self, call: Call, stream: Stream, room: int, deadline: float, context: Context
    ) -> bytes:
        """Return the bytes of a stream, or set the call's error.

        room: bytes left in the response. deadline: the event loop's time.
        """
        try:
            if call.error is None and stream.size > room:
                raise ResultTooLarge(stream.size, room, stream.advice)
            if call.error is None:
                async with asyncio.timeout_at(deadline):
                    return await stream.read()
        except TimeoutError:
            call.error = RequestTimedOut()
        except Exception as error:
            call.error = self._reported(error, call, context)
        finally:
            await stream.aclose()
        return b""

    def _encode(self, call: Call, value: Any, context: Context) -> bytes:
        """Return a call's result as JSON, or set the call's error."""
        if call.error is None and call.method is not None:
            try:
                return call.method.encode(value)
            except Exception as error:
                call.error = self._reported(error, call, context)
        return b""


def _start(call: Call, context: Context) -> Later[Any] | None:
    """Start a call of a batch, unless it was rejected or depends on the room left."""
    if call.error is not None or call.method is None:
        return Later.failed(call.error or InternalError())
    if call.method.takes_room:
        return None
    return call.method.start(context, call.arguments)


async def _in_turn(
    call: Call, room: int, deadline: float, context: Context, gone: Gone
) -> Later[Any]:
    """Execute a call that depends on the room left.

    room: bytes left in the response. deadline: the event loop's time.
    Raises: CallerGone.
    """
    if room < 0 or call.method is None:
        return Later.failed(ResponseTooLarge())
    outcome = call.method.start(context, (*call.arguments, room))
    await _wait([(call, outcome)], deadline, gone)
    return outcome


async def _wait(portion: Sequence[_Started], deadline: float, gone: Gone) -> bool:
    """Wait until all calls are complete; return True if the deadline comes first.

    Cancels the pending calls at the deadline. deadline: the event loop's time.
    Raises: CallerGone.
    """
    pending = [
        (call, outcome)
        for call, outcome in portion
        if outcome is not None and not outcome.is_done
    ]
    if not pending:
        return asyncio.get_running_loop().time() >= deadline
    done = when_all_done([outcome for _, outcome in pending])
    if any(call.is_slow for call, _ in pending):
        unless_gone(done, gone)
    try:
        async with asyncio.timeout_at(deadline):
            await done
    except TimeoutError:
        return True
    return False


async def _is_admitted(
    admitted: asyncio.Future[None], deadline: float, gone: Gone
) -> bool:
    """Wait until a batch is admitted; return False if that takes too long.

    deadline: the event loop's time. Raises: CallerGone.
    """
    try:
        async with asyncio.timeout_at(deadline):
            await unless_gone(Later.from_future(admitted), gone)
    except TimeoutError:
        return False
    return True
