"""The parts of a serving process, within the process of a test.

The event loop only runs during a call. Between calls, the test may use the ORM, and
notifications wait in the socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from jsonrpc.later import Later
from nodeapi.node import Node, build_node
from postgres.errors import Unavailable
from tests.support.waiting import until


class Serving:
    """A service whose parts can be called by synchronous code."""

    def __init__(self, runner: asyncio.Runner, service: Node) -> None:
        self._runner = runner
        self.service = service

    def ask(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method on the event loop, and wait for its result."""

        async def ask() -> Any:
            found = method(*arguments)
            return await found if isinstance(found, Awaitable) else found

        return self._runner.run(ask())

    def ask_all(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Call several methods concurrently. Exceptions are returned."""

        async def ask(method: Callable[..., Any], *arguments: Any) -> Any:
            found = method(*arguments)
            return await found if isinstance(found, Awaitable) else found

        async def ask_all() -> list[Any]:
            return await asyncio.gather(
                *(ask(*call) for call in calls), return_exceptions=True
            )

        return self._runner.run(ask_all())

    def at_once(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method whose result must be complete without I/O."""

        async def call() -> Any:
            answer = method(*arguments)
            if not isinstance(answer, Later):
                assert not isinstance(answer, Awaitable), "the answer needs I/O"
                return answer
            assert answer.is_done, "the answer needs I/O"
            return answer.result()

        return self._runner.run(call())

    def until(self, condition: Callable[[], object]) -> None:
        """Let the event loop run until a condition holds."""
        self._runner.run(until(condition))


@contextmanager
def changes_unknown(running: Serving) -> Iterator[None]:
    """Prevent a service from reading the outbox, and from serving cached data."""

    async def fail(*_: object) -> dict[str, object]:
        raise Unavailable("not now")

    with patch("outbox.subscriber.read_news", fail):
        running.until(lambda: running.service.subscriber.epoch == 0)
        yield


@contextmanager
def serving(**replaced: Any) -> Iterator[Serving]:
    """Start a service on the test database, listening and with the networks read.

    Needs `transactional_db`, because only committed data is visible.
    """
    with asyncio.Runner() as runner:
        service = build_node(**replaced)
        runner.run(service.start())
        try:
            running = Serving(runner, service)
            running.until(lambda: service.directory.is_fresh)
            # The streams of the networks' blocks are new, and cause another read.
            running.ask(service.subscriber.catch_up)
            running.ask(service.directory.refresh)
            yield running
        finally:
            runner.run(service.stop())
