"""Checks what the members of the model have logged.

A fact has taken effect in a subscription when its `on_change` was called, or `on_reload`
before a read that returned the fact.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

BOUND_SECONDS = 2.0
"""Time within which a change takes effect, or the member's epoch ends."""

TIMER_SECONDS = 0.1
"""Maximum delay of a timer, and of a log record about it."""

Fact = tuple[str, str]


@dataclass
class Outage:
    """A time in which the database could not be read.

    member: whose reads failed; None: all of them.
    """

    begin: float
    end: float
    member: int | None


@dataclass
class Incarnation:
    """A process of a member."""

    member: int
    log: Path
    killed_at: float = inf

    def records(self) -> Iterator[list[Any]]:
        """Yield the records. The last line of a killed process may be missing."""
        if self.log.exists():
            for line in self.log.read_text().splitlines():
                yield json.loads(line)


@dataclass
class Subscription:
    """The records of a subscription in the log.

    segments: the subjects of changes; each reload begins another segment.
    """

    member: int
    stream: str
    begin: float
    end: float
    reloads: list[float] = field(default_factory=list)
    segments: list[list[str]] = field(default_factory=list)
    failures: list[float] = field(default_factory=list)
    effects: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    """The times at which facts took effect. A reload takes effect before its read ends."""
    is_stale: bool = True
    """Whether the next call has to be a reload."""
    facts: set[str] | None = None
    """The known facts at the end. None if the process was killed."""


@dataclass
class Process:
    """The records in the log of an incarnation."""

    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    unverified: list[list[float]] = field(default_factory=list)
    """Begin and end of each period in which the process had no epoch."""
    stalls: list[tuple[float, float]] = field(default_factory=list)
    delays: list[tuple[float, float]] = field(default_factory=list)
    """Begin and end of each wait for a delayed result of the database."""
    errors: list[str] = field(default_factory=list)

    def stalled(self, begin: float, end: float) -> float:
        """Return for how long the event loop was delayed in a time."""
        return sum(
            late for when, late in self.stalls if when >= begin and when - late <= end
        )


@dataclass
class Truth:
    """The content of the database at the end.

    numbers: of all entries that were committed, also of those that were lost later.
    facts: those that were not lost.
    """

    numbers: dict[Fact, int]
    facts: set[Fact]


@dataclass
class History:
    """The logs of all processes, and the known commit times of facts."""

    processes: list[Process]
    committed: dict[Fact, float]


def read(
    incarnations: Iterable[Incarnation], over: float, written: dict[Fact, float]
) -> History:
    """Read the logs.

    written: commit times of facts that no member has written.
    over: the end of subscriptions of members that were not killed.
    """
    processes = []
    committed = dict(written)
    for incarnation in incarnations:
        process = Process()
        processes.append(process)
        for when, kind, *fields in incarnation.records():
            if kind == "committed":
                committed.update(
                    ((stream, subject), when) for stream, subject in fields[0]
                )
            else:
                end = min(incarnation.killed_at, over)
                _replay(process, incarnation.member, end, when, kind, fields)
    # A writer may have been killed before it recorded its commit.
    for process in processes:
        for one in process.subscriptions.values():
            for subject, when in one.seen.items():
                fact = (one.stream, subject)
                committed[fact] = min(when, committed.get(fact, inf))
    return History(processes, committed)


def _replay(
    process: Process, member: int, end: float, when: float, kind: str, fields: list[Any]
) -> None:
    match kind, fields:
        case "started", _:
            process.unverified.append([when, inf])
        case "epoch", _:
            process.unverified[-1][1] = when
        case "lapse", _:
            process.unverified.append([when, inf])
        case "stall", [late]:
            process.stalls.append((when, late))
        case "delayed", [seconds]:
            process.delays.append((when - seconds, when))
        case "error", [text]:
            process.errors.append(text)
        case "ended", [facts]:
            for number, subjects in facts.items():
                process.subscriptions[int(number)].facts = set(subjects)
        case "subscribed", [number, stream]:
            process.subscriptions[number] = Subscription(member, stream, when, end)
        case _, [number, *rest]:
            _replay_call(process, process.subscriptions[number], when, kind, rest)


def _replay_call(
    process: Process, one: Subscription, when: float, kind: str, rest: list[Any]
) -> None:
    match kind, rest:
        case "unsubscribed", _:
            one.end = when
        case "failed", _:
            one.is_stale = True
            one.failures.append(when)
        case "reload", _:
            one.is_stale = False
            one.reloads.append(when)
            one.segments.append([])
        case "read", [since, subjects]:
            for subject in subjects:
                one.effects[subject] = min(since, one.effects.get(subject, inf))
                one.seen.setdefault(subject, when)
        case "change", [subject]:
            if one.is_stale:
                process.errors.append(f"{one.stream}: {subject} before a reload")
                one.segments.append([])
            one.segments[-1].append(subject)
            one.effects[subject] = min(when, one.effects.get(subject, inf))
            one.seen.setdefault(subject, when)


def problems(history: History, truth: Truth, outages: list[Outage]) -> list[str]:
    """Return the violations of rules, as text."""
    found = []
    by_stream = defaultdict(list)
    for stream, subject in truth.facts:
        fact = (stream, subject)
        by_stream[stream].append((history.committed.get(fact, inf), subject))
    for stream in by_stream.values():
        stream.sort()
    for process in history.processes:
        found += process.errors
        for one in process.subscriptions.values():
            found += _order(one, truth)
            found += _delays(process, one, by_stream[one.stream], outages)
            facts = {subject for _, subject in by_stream[one.stream]}
            if one.facts is not None and one.facts != facts:
                wrong = sorted(one.facts ^ facts)
                found.append(f"{one.stream}: differs in {len(wrong)}: {wrong[:5]}")
    return found


def _order(one: Subscription, truth: Truth) -> list[str]:
    """Check that each number was processed once, and in order."""
    found = []
    seen: set[str] = set()
    for segment in one.segments:
        for subject in segment:
            if subject in seen:
                found.append(f"{one.stream}: {subject} again")
            if (one.stream, subject) not in truth.numbers:
                found.append(f"{one.stream}: {subject} was not committed")
            seen.add(subject)
        numbers = [truth.numbers.get((one.stream, subject), -1) for subject in segment]
        for before, after in pairwise(numbers):
            if after != before + 1:
                found.append(f"{one.stream}: {after} after {before}")
    return found


def _delays(
    process: Process,
    one: Subscription,
    facts: list[tuple[float, str]],
    outages: list[Outage],
) -> list[str]:
    """Check that facts took effect in time, or that the process had no epoch."""
    found = []
    begins = sorted(
        [
            (outage.begin, outage.end)
            for outage in outages
            if outage.member in (None, one.member)
        ]
        + [(failure, failure) for failure in one.failures]
        + process.delays
    )
    for committed, subject in facts:
        effect = one.effects.get(subject, inf)
        since = max(committed, one.begin)
        if effect - since < BOUND_SECONDS or since == inf:
            continue
        slack = TIMER_SECONDS + process.stalled(since, min(effect, one.end))
        found += _unnoticed(process, one, subject, since + slack, effect)
        for begin, end in begins:
            if begin < since + BOUND_SECONDS:
                since = max(since, end)
        late = min(effect, one.end) - since
        if late > BOUND_SECONDS + slack:
            found.append(f"{one.stream}: {subject} took more than {late:.2f} s")
    return found


def _unnoticed(
    process: Process, one: Subscription, subject: str, since: float, effect: float
) -> list[str]:
    """Check that a process did not verify its streams while a fact was overdue."""
    overdue = since + BOUND_SECONDS
    if not one.reloads or one.reloads[0] > overdue:
        return []  # there is no guarantee before the first call
    for failure in one.failures:
        if since <= failure <= effect:
            return []
    end = min(effect, one.end)
    for begin, until in process.unverified:
        if begin <= overdue and until >= overdue:
            # The first calls of an epoch are made together.
            overdue = until + TIMER_SECONDS
    if overdue < end:
        return [
            f"{one.stream}: {subject} unknown for {end - since:.2f} s, yet verified"
        ]
    return []


def latencies(history: History, begin: float, end: float) -> list[float]:
    """Return the sorted delays of facts that were committed in a time."""
    return sorted(
        max(0.0, effect - history.committed[one.stream, subject])
        for process in history.processes
        for one in process.subscriptions.values()
        for segment in one.segments
        for subject in segment
        if begin <= history.committed[one.stream, subject] <= end
        for effect in [one.effects[subject]]
    )


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))]
