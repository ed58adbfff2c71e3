"""A value that comes with one future: what one question to the database answers."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """What is made of a future's result.

    Whoever can go on in a callback of the future, and calls `take` there, needs neither
    a task nor a coroutine, which cost more than the question does; others await it.

    make: makes the value, or something to await where more has to be asked.
    """

    __slots__ = ("_make", "future")

    def __init__(
        self, future: Future[Any], make: Callable[[Any], T | Awaitable[T]]
    ) -> None:
        self.future = future
        self._make = make

    def take(self) -> T | Awaitable[T]:
        """Return the value, or something to await for it; the future must be done.

        Raises: what the future does, or the making.
        """
        return self._make(self.future.result())

    def __await__(self) -> Generator[Any, None, T]:
        yield from self.future
        value = self.take()
        if isinstance(value, Awaitable):
            return (yield from value.__await__())
        return value
