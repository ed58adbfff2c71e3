"""The result of an operation, available now or after I/O.

`Later` is the return type of look-ups. The store returns it, the methods and the dispatcher
add steps to it, and the server sends the response when it is complete. A value that is
available at once (a cache hit) needs neither a task nor a turn of the event loop. Steps that
follow one future run in a single callback of the event loop.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError, Future
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import (
    Any,
    Final,
    Generic,
    Protocol,
    TypeVar,
    TypeVarTuple,
    cast,
    final,
    overload,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Ts = TypeVarTuple("Ts")
U = TypeVar("U")


class _Cancellable(Protocol):
    def cancel(self) -> object:
        """Cancel a pending operation."""


@final
class Later(Generic[T_co]):
    """A value, an error, or neither yet, while the operation is pending.

    `Later(value)` is complete. `from_future`, `from_coroutine`, `then` and `handle` return
    pending ones. An object belongs to one event loop and is not thread-safe. An error that
    no code reads is not logged.
    """

    __slots__ = ("_callbacks", "_source", "error", "is_done", "value")

    is_done: bool
    """Whether a value or an error is available."""
    value: T_co
    """Unset while the operation is pending, and after an error. Only for code that has
    looked at `is_done` and `error`; others use `result`."""
    error: BaseException | None
    """The error of a failed operation. None if it succeeded or is pending."""
    _callbacks: list[Callable[[Later[T_co]], object]] | None
    """Functions to call on completion, in order. Unset if the object was created
    complete."""
    _source: _Cancellable | None
    """The operation that this one depends on. Unset if the object was created complete."""

    def __init__(self, value: T_co) -> None:
        self.is_done = True
        self.value = value
        self.error = None

    @classmethod
    def failed(cls, error: BaseException) -> Later[T_co]:
        """Return a completed operation whose `result` raises the error."""
        later = cls.__new__(cls)
        later.is_done = True
        later.error = error
        return later

    @classmethod
    def from_future(cls, future: Future[T_co]) -> Later[T_co]:
        """Return the result of a future. Cancelling it cancels the future."""
        later = cls._pending(future)
        if future.done():
            later._take_future(future)
        else:
            future.add_done_callback(later._take_future)
        return later

    @classmethod
    def from_coroutine(cls, coroutine: Coroutine[Any, Any, T_co]) -> Later[T_co]:
        """Run a coroutine in a task and return its result."""
        return cls.from_future(asyncio.ensure_future(coroutine))

    @classmethod
    def _pending(cls, source: _Cancellable) -> Later[T_co]:
        later = cls.__new__(cls)
        later.is_done = False
        later.error = None
        later._callbacks = None
        later._source = source
        return later

    def result(self) -> T_co:
        """Return the value of a completed operation, or raise its error."""
        error = self.error
        if error is not None:
            try:
                raise error
            finally:
                # The traceback refers to this frame. If the frame referred to the error,
                # only the garbage collector could free them.
                del self, error
        return self.value

    @overload
    def then(
        self, step: Callable[[T_co, *Ts], Later[U]], *arguments: *Ts
    ) -> Later[U]: ...
    @overload
    def then(self, step: Callable[[T_co, *Ts], U], *arguments: *Ts) -> Later[U]: ...
    def then(self, step: Callable[[T_co, *Ts], Any], *arguments: *Ts) -> Later[Any]:
        """Return the result of a step that takes the value.

        step: returns a value or another `Later`. It is called at once if the value is
            available. It is not called after an error, which becomes the result.
        arguments: of the step, after the value.
        """
        if self.is_done:
            if self.error is not None:
                return self
            try:
                made = step(self.value, *arguments)
            except (Exception, CancelledError) as error:
                return Later.failed(error)
            return made if type(made) is Later else Later(made)
        following: Later[Any] = Later._pending(self)

        def go_on(done: Later[T_co]) -> None:
            if not following.is_done:
                following._follow(done.then(step, *arguments))

        self.when_done(go_on)
        return following

    @overload
    def handle(self, step: Callable[[Later[T_co]], Later[U]]) -> Later[U]: ...
    @overload
    def handle(self, step: Callable[[Later[T_co]], U]) -> Later[U]: ...
    def handle(self, step: Callable[[Later[T_co]], Any]) -> Later[Any]:
        """Return the result of a step that takes a value or an error.

        step: like that of `then`, but it takes this object, which is complete, and it is
            called after an error as well. It is not called if the returned operation was
            cancelled before.
        """
        if self.is_done:
            try:
                made = step(self)
            except (Exception, CancelledError) as error:
                return Later.failed(error)
            return made if type(made) is Later else Later(made)
        following: Later[Any] = Later._pending(self)

        def go_on(done: Later[T_co]) -> None:
            if not following.is_done:
                following._follow(done.handle(step))

        self.when_done(go_on)
        return following

    def when_done(self, callback: Callable[[Later[T_co]], object]) -> None:
        """Call a function with this object on completion, at once if it is complete.

        callback: must not raise.
        """
        if self.is_done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def cancel(self) -> None:
        """Complete a pending operation with `asyncio.CancelledError`; see `abort`."""
        self.abort(CancelledError())

    def abort(self, error: BaseException) -> None:
        """Complete a pending operation with an error.

        Cancels the operations that it depends on. Their results are ignored. Does nothing
        to a completed operation.
        """
        if not self.is_done:
            source = self._source
            self._finish(None, error)
            if source is not None:
                source.cancel()

    def __await__(self) -> Generator[Any, None, T_co]:
        """Wait for the result. Cancelling the waiting task cancels the operation."""
        if not self.is_done:
            waiter: Future[None] = asyncio.get_running_loop().create_future()

            def wake(_: Later[T_co]) -> None:
                if not waiter.done():
                    waiter.set_result(None)

            self.when_done(wake)
            try:
                yield from waiter
            except CancelledError:
                self.cancel()
                raise
        try:
            return self.result()
        finally:
            del self  # see `result`

    def _follow(self, other: Later[T_co]) -> None:
        """Complete with the result of another operation as soon as it completes."""
        if other.is_done:
            self._take(other)
        else:
            self._source = other
            other.when_done(self._take)

    def _take(self, other: Later[T_co]) -> None:
        error = other.error
        self._finish(other.value if error is None else None, error)

    def _take_future(self, future: Future[T_co]) -> None:
        if future.cancelled():
            self._finish(None, CancelledError())
        elif (error := future.exception()) is not None:
            self._finish(None, error)
        else:
            self._finish(future.result(), None)

    def _finish(self, value: T_co | None, error: BaseException | None) -> None:
        """Set the result and call the callbacks. Do nothing if already complete."""
        if self.is_done:
            return
        if error is None:
            self.value = cast(T_co, value)
        self.error = error
        self.is_done = True
        self._source = None
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            for callback in callbacks:
                callback(self)


DONE: Final[Later[None]] = Later(None)
"""A completed operation without a value."""


def if_found(later: Later[T | None], step: Callable[[T], Later[U]]) -> Later[U | None]:
    """Return the result of a step that takes a value other than None.

    None stays None, without a call of the step.
    """
    return later.then(lambda value: DONE if value is None else step(value))


class _Group:
    """Several pending operations, to be cancelled together."""

    __slots__ = ("_members",)

    def __init__(self, members: Sequence[Later[Any]]) -> None:
        self._members = members

    def cancel(self) -> None:
        for member in self._members:
            member.cancel()


def when_all_done(laters: Sequence[Later[Any]]) -> Later[None]:
    """Return an operation that is complete when all others are, failed ones included.

    Cancelling it cancels those that are pending.
    """
    pending = [later for later in laters if not later.is_done]
    if not pending:
        return DONE
    whole: Later[None] = Later._pending(_Group(pending))
    count = len(pending)

    def take(_: Later[Any]) -> None:
        nonlocal count
        count -= 1
        if not count:
            whole._finish(None, None)

    for later in pending:
        later.when_done(take)
    return whole


def all_of(laters: Sequence[Later[T]]) -> Later[list[T]]:
    """Return the values of several operations, in order.

    If some fail, the result is the error of the first of them in the sequence, once all
    are complete. Cancelling it cancels those that are pending.
    """
    return when_all_done(laters).then(lambda _: [later.result() for later in laters])
