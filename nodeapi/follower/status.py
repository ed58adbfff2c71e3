"""Writes the follower's progress and timings to the database, for pages and metrics."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import IntegrityError
from django.utils import timezone
from eth_typing import Hash32

from legible.text import visible
from nodeapi.follower.choice import Point
from nodeapi.follower.watcher import Watcher
from nodeapi.models import (
    FollowerStatus,
    ImportTiming,
    QuarantinedBlock,
    UpstreamStatus,
)

WRITE_SECONDS = 1.0
"""Interval at which the status is written while the head does not change."""

TIMINGS_KEPT = timedelta(days=1)
PRUNE_SECONDS = 600.0

_FIELDS = [
    *("head_number", "head_hash", "client_version", "latency_ms", "requests", "errors"),
    *("last_error", "last_error_at", "backing_off_until", "checked_at"),
    *("fork_warnings", "unsupported_fork_time"),
]


@dataclass(frozen=True, slots=True)
class Situation:
    """The follower's progress.

    best: the highest head that enough upstreams have reached, None if unknown.
    starting_number: the head's number when catching up began; None if the follower is
        not catching up.
    alarm: a problem that staff have to solve, or empty.
    """

    best: Point | None
    starting_number: int | None
    alarm: str


@dataclass(frozen=True, slots=True)
class Timing:
    """The import of one block, in seconds."""

    number: int
    fetch_seconds: float
    execute_seconds: float
    transactions: int
    gas_used: int


class StatusWriter:
    """Writes the status rows of one network through Django's connection."""

    def __init__(self, network_id: int) -> None:
        """Use the present time as the start of the process."""
        self._network_id = network_id
        self._started_at = timezone.now()
        self._written_at = 0.0
        self._pruned_at = 0.0
        self._timings: list[Timing] = []

    @property
    def is_due(self) -> bool:
        """Whether `WRITE_SECONDS` have passed since the last write."""
        return time.monotonic() >= self._written_at + WRITE_SECONDS

    def imported(self, timing: Timing) -> None:
        """Keep the timing of an imported block until `committed` writes it."""
        self._timings.append(timing)

    def committed(self, seconds: float) -> None:
        """Write the timings of the blocks that a commit made canonical.

        seconds: the duration of the commit, of which each block gets an equal share.
        """
        timings, self._timings = self._timings, []
        if timings:
            ImportTiming.objects.bulk_create(
                ImportTiming(
                    network_id=self._network_id,
                    number=timing.number,
                    fetch_ms=timing.fetch_seconds * 1000,
                    execute_ms=timing.execute_seconds * 1000,
                    commit_ms=seconds * 1000 / len(timings),
                    transactions=timing.transactions,
                    gas_used=timing.gas_used,
                )
                for timing in timings
            )

    def quarantined(self, block: Point, upstream_id: int, reason: str) -> None:
        """Insert a quarantined block, unless the upstream has sent it before."""
        QuarantinedBlock.objects.get_or_create(
            network_id=self._network_id,
            hash=block.hash,
            upstream_id=upstream_id,
            defaults={"number": block.number, "reason": _text(reason)},
        )

    def still_quarantined(self, hashes: Collection[Hash32]) -> set[Hash32]:
        """Return the given hashes whose blocks are still stored as quarantined."""
        if not hashes:
            return set()
        found = QuarantinedBlock.objects.filter(
            network_id=self._network_id, hash__in=hashes
        )
        return {Hash32(bytes(each)) for each in found.values_list("hash", flat=True)}

    def write(self, situation: Situation, watchers: Sequence[Watcher]) -> None:
        """Write the rows of the follower and, once a second, of its upstreams."""
        best = situation.best
        FollowerStatus.objects.update_or_create(
            network_id=self._network_id,
            defaults={
                "process_started_at": self._started_at,
                "updated_at": timezone.now(),
                "best_number": None if best is None else best.number,
                "best_hash": None if best is None else best.hash,
                "starting_number": situation.starting_number,
                "alarm": _text(situation.alarm),
            },
        )
        if self.is_due:
            self._written_at = time.monotonic()
            # An upstream may have been deleted since the settings were read. They are
            # read again within a second, and then all rows are written.
            with suppress(IntegrityError):
                UpstreamStatus.objects.bulk_create(
                    [_upstream_status(watcher) for watcher in watchers],
                    update_conflicts=True,
                    unique_fields=["upstream"],
                    update_fields=_FIELDS,
                )

    def prune(self) -> None:
        """Delete timings older than a day. Do so at most every `PRUNE_SECONDS`."""
        if time.monotonic() < self._pruned_at + PRUNE_SECONDS:
            return
        self._pruned_at = time.monotonic()
        ImportTiming.objects.filter(
            network_id=self._network_id, at__lt=timezone.now() - TIMINGS_KEPT
        ).delete()


def _upstream_status(watcher: Watcher) -> UpstreamStatus:
    health, forks, stop = watcher.health, watcher.forks, watcher.fork_stop
    head = watcher.head if stop is None else stop.newest
    reason = watcher.trouble or (health.last_error if stop is None else stop.text)
    pause = health.backing_off_until - time.monotonic()
    return UpstreamStatus(
        upstream_id=watcher.upstream.id,
        head_number=None if head is None else head.number,
        head_hash=None if head is None else head.hash,
        client_version=_text(watcher.client_version),
        latency_ms=health.latency_seconds and health.latency_seconds * 1000,
        requests=health.requests,
        errors=health.errors,
        last_error=_text(reason),
        last_error_at=_time(watcher.failed_at),
        backing_off_until=(
            timezone.now() + timedelta(seconds=pause) if pause > 0 else None
        ),
        checked_at=_time(watcher.checked_at),
        fork_warnings="\n".join(forks.sentences),
        unsupported_fork_time=(
            None if forks.unsupported is None else forks.unsupported.time
        ),
    )


def _text(text: str) -> str:
    """Replace or remove the characters that PostgreSQL or a page cannot show."""
    return visible(text)[:1000].replace("\0", "")


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
