"""A process of the model: it writes to streams, follows all of them, and logs both.

It is forked, reads commands from a pipe, and ends when that is closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from config.start import read_settings

read_settings()

import psycopg  # noqa: E402
from channels.layers import channel_layers  # noqa: E402
from django.db import Error, connection, transaction  # noqa: E402
from psycopg.conninfo import make_conninfo  # noqa: E402

from outbox.append import append, begin  # noqa: E402
from outbox.subscriber import Subscriber  # noqa: E402
from postgres.connections import Connections  # noqa: E402
from postgres.errors import Unavailable  # noqa: E402
from postgres.statement import TEXT, Row, Statement  # noqa: E402
from tests.outbox.model.facts import (  # noqa: E402
    INSERT,
    QUIET,
    STREAMS,
    Facts,
    follower_name,
    is_outage,
    plan,
)

after_fork = read_settings
CONNINFO = os.environ["DATABASE_URL"]

TICK_SECONDS = 0.05
STALL_SECONDS = 0.1
"""Delays of the event loop or of a result are logged from this duration on."""

_FACTS = Statement("SELECT subject FROM model_fact WHERE stream = $1", [TEXT.oid])


class Undo(Exception):
    """Raised to roll a transaction back."""


class Log:
    """Writes records immediately, so that a killed process loses none."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __call__(self, kind: str, *fields: Any) -> None:
        line = json.dumps([time.monotonic(), kind, *fields])
        os.write(self._file, line.encode() + b"\n")


class SlowConnections(Connections):
    """Connections that sometimes delay results, until `quiet` is set."""

    def __init__(
        self,
        conninfo: str,
        log: Log,
        random: Random,
        rate: float,
        quiet: threading.Event,
    ) -> None:
        super().__init__(conninfo)
        self._quiet = quiet
        self._log = log
        self._random = random
        self._rate = rate
        self._chance = 0.0
        """Probability that the next result is delayed."""
        self._next_delay = time.monotonic() + 1.0

    def fetch(
        self, statement: Statement, parameters: Sequence[bytes] = ()
    ) -> asyncio.Future[list[Row]]:
        found = super().fetch(statement, parameters)
        begin = time.monotonic()
        found.add_done_callback(lambda _: self._note(begin))
        if self._quiet.is_set() or self._random.random() >= self._chance:
            is_early = time.monotonic() < self._next_delay
            self._chance = 0.0 if is_early else self._rate / 10
            return found
        self._chance = 0.5  # because the next result replaces this one
        self._next_delay = time.monotonic() + 6.0
        return self.loop.create_task(self._delay(found))

    def _note(self, begin: float) -> None:
        """Log a result of a database that is slow because the machine is busy."""
        seconds = time.monotonic() - begin
        if seconds > STALL_SECONDS:
            self._log("delayed", seconds)

    async def _delay(self, found: asyncio.Future[list[Row]]) -> list[Row]:
        rows = await found
        begin = time.monotonic()
        end = begin + self._random.uniform(0.5, 3.0)
        while time.monotonic() < end and not self._quiet.is_set():
            await asyncio.sleep(0.02)
        self._log("delayed", time.monotonic() - begin)
        return rows


class View:
    """A follower's copy of the facts of a stream, kept by one subscription."""

    def __init__(self, member: Member, number: int, stream: str) -> None:
        self._member = member
        self._log = member.log
        self.number = number
        self.stream = stream
        self.facts: set[str] = set()
        self._changed: set[str] = set()
        """Changes since the present read has begun."""
        self._stale_since = 0.0
        self._reads_again = False
        self._reading: asyncio.Task[None] | None = None
        self._next_failure = 0.0
        self._log("subscribed", number, stream)
        self._end = member.subscriber.subscribe(stream, self._change, self._reload)

    def end(self) -> None:
        self._end()
        self._log("unsubscribed", self.number)
        if self._reading is not None:
            self._reading.cancel()

    def _change(self, subject: str) -> None:
        self._fail_sometimes(0.003)
        self._log("change", self.number, subject)
        self.facts.add(subject)
        self._changed.add(subject)

    def _reload(self) -> None:
        self._fail_sometimes(0.1)
        self._log("reload", self.number)
        self._reads_again = True
        if self._reading is None:
            self._stale_since = time.monotonic()
            self._reading = asyncio.get_running_loop().create_task(self._read())

    def _fail_sometimes(self, probability: float) -> None:
        member = self._member
        now = time.monotonic()
        if now < self._next_failure or member.quiet.is_set():
            return
        if member.random.random() < probability * member.rate:
            self._next_failure = now + 4.0
            self._log("failed", self.number)
            raise ValueError("a failure of the model")

    async def _read(self) -> None:
        while self._reads_again:
            self._reads_again = False
            self._changed = set()
            try:
                rows = await self._member.views.fetch(_FACTS, [self.stream.encode()])
            except Unavailable:
                self._reads_again = True
                await asyncio.sleep(0.05)
        facts = {(row[0] or b"").decode() for row in rows} | self._changed
        self._log("read", self.number, self._stale_since, sorted(facts - self.facts))
        self.facts = facts
        self._reading = None


class Member:
    """The follower and the writers of a process."""

    def __init__(
        self, index: int, seed: str, path: str, rate: float, commands: int
    ) -> None:
        self.log = Log(path)
        self._commands = commands
        self.rate = rate
        self.random = Random(f"{seed} follower")
        self._seed = seed
        self.quiet = threading.Event()
        own = make_conninfo(CONNINFO, application_name=follower_name(index))
        self.connections = SlowConnections(own, self.log, self.random, rate, self.quiet)
        self.views = Connections(CONNINFO)
        self.subscriber = Subscriber(
            self.connections, channel_layers.make_backend("default")
        )
        self._views: dict[str, View] = {}
        self._subscriptions = 0

    async def run(self) -> None:
        subscriber = self.subscriber
        subscriber.at_epoch(lambda: self.log("epoch"))
        subscriber.at_lapse(lambda: self.log("lapse"))
        self.log("started")
        for stream in STREAMS:
            self._subscribe(stream)
        await subscriber.start()
        writers = [
            threading.Thread(target=self._write, args=(number, commit))
            for number, commit in enumerate((commit_with_django, PsycopgWriter()))
        ]
        for writer in writers:
            writer.start()
        loop = asyncio.get_running_loop()
        background = [loop.create_task(self._tick()), loop.create_task(self._churn())]
        await self._follow_commands()
        for task in background:
            task.cancel()
        self.quiet.set()
        for writer in writers:
            writer.join()
        self.log("ended", {v.number: sorted(v.facts) for v in self._views.values()})
        await subscriber.stop()
        await self.connections.close()
        await self.views.close()

    def _subscribe(self, stream: str) -> None:
        self._subscriptions += 1
        self._views[stream] = View(self, self._subscriptions, stream)

    async def _follow_commands(self) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._commands)
        )
        while line := await reader.readline():
            if line.decode().strip() == QUIET:
                self.quiet.set()

    async def _tick(self) -> None:
        """Log delays of the event loop, which happen on a busy machine."""
        while True:
            due = time.monotonic() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            late = time.monotonic() - due
            if late > STALL_SECONDS:
                self.log("stall", late)

    async def _churn(self) -> None:
        """Sometimes end a subscription and begin another one."""
        while self.rate:
            await asyncio.sleep(self.random.uniform(0.5, 3.0))
            if self.quiet.is_set():
                return
            stream = self.random.choice(STREAMS)
            self._views.pop(stream).end()
            if self.random.random() < 0.5:
                await asyncio.sleep(self.random.uniform(0, 0.3))
            self._subscribe(stream)

    def _write(self, number: int, commit: Callable[..., None]) -> None:
        random = Random(f"{self._seed} writer {number}")
        name = f"{self._seed.replace(' ', '-')}.{number}"
        transactions = 0
        while not self.quiet.wait(random.uniform(0.01, 0.06)):
            transactions += 1
            facts, undone = plan(random, f"{name}.{transactions}")
            pause = random.uniform(0, 0.05) if random.random() < 0.3 else 0.0
            is_undone = random.random() < 0.15
            try:
                commit(facts, undone, pause, is_undone)
            except Undo:
                pass
            except (Error, psycopg.Error) as error:
                if not is_outage(error):
                    self.log("error", repr(error))
            except Exception as error:
                self.log("error", repr(error))
            else:
                self.log("committed", facts)


def commit_with_django(
    facts: Facts, undone: Facts, pause: float, is_undone: bool
) -> None:
    """Commit facts with Django's connection."""
    connection.close_if_unusable_or_obsolete()
    try:
        with transaction.atomic():
            for stream, subject in facts:
                _add_with_django(stream, subject)
            if undone:
                try:
                    with transaction.atomic():
                        for stream, subject in undone:
                            _add_with_django(stream, subject)
                        raise Undo
                except Undo:
                    pass
            time.sleep(pause)
            if is_undone:
                raise Undo
    except Error:
        connection.close()
        raise


def _add_with_django(stream: str, subject: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [stream, subject])
    append(stream, subject)
    append(stream, subject)  # two entries with the same subject become one


class PsycopgWriter:
    """Commits facts with a psycopg connection, as the importer of blocks does."""

    def __init__(self) -> None:
        self._opened: psycopg.Connection[Any] | None = None

    def __call__(
        self, facts: Facts, undone: Facts, pause: float, is_undone: bool
    ) -> None:
        if self._opened is None or self._opened.closed:
            self._opened = psycopg.connect(CONNINFO, autocommit=True)
        opened = self._opened
        with begin(opened) as changes:
            for stream, subject in facts:
                opened.execute(INSERT, (stream, subject))
                changes.append(stream, subject)
            if undone:
                try:
                    with opened.transaction():
                        for stream, subject in undone:
                            opened.execute(INSERT, (stream, subject))
                            changes.append(stream, subject)
                        raise Undo
                except Undo:
                    pass
            time.sleep(pause)
            if is_undone:
                raise Undo


def main(index: int, seed: str, path: str, rate: float, commands: int) -> None:
    """Run a member. commands: descriptor of a pipe, until whose end it runs."""
    asyncio.run(Member(index, seed, path, rate, commands).run())
