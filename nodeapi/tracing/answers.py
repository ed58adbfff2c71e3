"""Queued tasks, and the answers of the requests that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import orjson

from evm.proved_state import UnknownValues
from jsonrpc.errors import InternalError, RpcError, ServiceUnavailable
from jsonrpc.stream import Stream
from nodeapi.errors.execution import (
    ExecutionFailed,
    TaskResultTooLarge,
    TaskTimeout,
)
from nodeapi.proofs.unknown import UnknownNodes
from nodeapi.results.spool import Hold, ResultFile, SpoolCount
from nodeapi.tracing import wire

SHORT_SECONDS = 10.0
"""Longest time limit of a task that shares a message with others."""
ATTEMPTS = 3
"""Number of lost workers after which a task fails, although another task was executing when
they died."""

BYTES_OF_ONE = 2**16
"""A task with more bytes of arguments counts as several tasks, one for each such part."""

Spent = Callable[[float], object]
"""Takes the seconds of processor time that an execution has taken."""

ADVICE = "request less in one call"


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """The result of a task: JSON, and the gas that its execution used."""

    result: bytes | Stream
    gas_used: int


@dataclass(slots=True)
class Waiter:
    """A request that waits for a task.

    key: the API key. place: released when a long result was read; None for a short
        task, which is counted otherwise, with its weight.
    spent: takes the seconds of processor time of each execution.
    """

    future: asyncio.Future[TaskAnswer]
    key: Hashable
    place: Hold | None
    spent: Spent

    def answer(
        self,
        outcome: TaskAnswer | BaseException,
        customer: Hashable,
        spool: ResultFile | None,
        spooled: SpoolCount,
    ) -> None:
        """Complete the request, unless it was cancelled. spool: of a long result."""
        if not self.future.done() and spool is not None:
            assert isinstance(outcome, TaskAnswer)
            try:
                outcome = TaskAnswer(
                    self._stream(spool, customer, spooled), outcome.gas_used
                )
            except RpcError as error:
                outcome = error
        if isinstance(outcome, TaskAnswer) and isinstance(outcome.result, Stream):
            pass  # which releases the place
        elif self.place is not None:
            self.place.release()
        if self.future.done():
            return
        if isinstance(outcome, TaskAnswer):
            self.future.set_result(outcome)
        elif isinstance(outcome, asyncio.CancelledError):
            self.future.cancel()
        else:
            self.future.set_exception(outcome)

    def _stream(
        self, spool: ResultFile, customer: Hashable, spooled: SpoolCount
    ) -> Stream:
        """Return a reader of a long result. Raises: TooMuchUnread."""
        spooled.check_share(customer)
        holds = [spooled.add_reader(spool, customer)]
        if self.place is not None:
            holds.append(self.place)
        return spool.stream(ADVICE, *holds)


class QueuedTask:
    """A task that is queued or executed, with the requests that wait for it.

    name: the encoded job. customer: in whose turn it is executed.
    """

    __slots__ = ("attempts", "customer", "name", "timeout", "waiters", "weight")

    def __init__(self, name: bytes, timeout: float, customer: Hashable) -> None:
        self.name = name
        self.weight = weight_of(name)
        self.timeout = timeout
        self.customer = customer
        self.attempts = 0
        self.waiters: list[Waiter] = []

    @property
    def may_share(self) -> bool:
        """Whether the task may share a message with other tasks.

        If a worker dies with several tasks, each of them is then sent in its own message.
        Therefore no task fails because of another one.
        """
        return self.timeout <= SHORT_SECONDS and not self.attempts

    @property
    def is_wanted(self) -> bool:
        """Whether a request still waits for it."""
        return any(not waiter.future.done() for waiter in self.waiters)

    def charge(self, seconds: float) -> None:
        """Charge an execution to all requests, cancelled ones included."""
        for waiter in self.waiters:
            waiter.spent(seconds)

    def add_waiter(
        self, key: Hashable, place: Hold | None, spent: Spent
    ) -> asyncio.Future[TaskAnswer]:
        """Add a request, and return the future of its answer."""
        future: asyncio.Future[TaskAnswer]
        future = asyncio.get_running_loop().create_future()
        self.waiters.append(Waiter(future, key, place, spent))
        return future


def weight_of(name: bytes) -> int:
    """Return the number of tasks for which an encoded job counts in the limits."""
    return 1 + len(name) // BYTES_OF_ONE


def failure_of(
    kind: bytes, rest: bytes, gas_used: int, timeout: float, limit: int
) -> RpcError | UnknownValues | UnknownNodes:
    """Return the error of a task's outcome. limit: of results, in bytes."""
    if kind == wire.UNKNOWN_NODES:
        return UnknownNodes(wire.decode_keys(rest))
    if kind == wire.UNKNOWN:
        return wire.decode_unknown(rest)
    if kind == wire.FAILED:
        code, message, data, is_lasting = orjson.loads(rest)
        return ExecutionFailed(code, message, data, gas_used, is_lasting=is_lasting)
    if kind == wire.TIMED_OUT:
        return TaskTimeout(timeout)
    if kind == wire.TOO_LARGE:
        if rest:
            (limit,) = wire.LENGTH.unpack(rest)
        return TaskResultTooLarge(limit, gas_used)
    if kind == wire.UNAVAILABLE:
        return ServiceUnavailable()
    return InternalError()
