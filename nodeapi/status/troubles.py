"""Networks and upstreams that need attention, for the admin's first page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch

from legible.text import visible
from networks.models import Network, NetworkDeletion, NetworkState, Upstream
from nodeapi.deletion.progress import decode
from nodeapi.models import FollowerStatus, UpstreamStatus
from nodeapi.status.facts import upstream_state
from nodeapi.status.following import BLOCKS_BEHIND, SILENT, blocks_behind

READ = 100
"""Maximum number of networks that are examined."""

SHOWN_CHARACTERS = 200
"""Maximum length of an error."""

_BAD = ("backing off", "failing", "behind")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A network or an upstream that needs attention.

    what: a short description of the problem. detail: an error or a number, or "".
    """

    network: Network
    what: str
    detail: str


def troubles(now: datetime) -> list[Trouble]:
    """Return the problems of followed networks and their upstreams.

    The number of queries does not depend on the number of networks.
    """
    enabled = Upstream.objects.filter(is_enabled=True).select_related("status")
    followed = (
        Network.objects.exclude(state=NetworkState.RETIRED)
        .filter(upstreams__is_enabled=True)
        .distinct()
        .defer("genesis")
        .prefetch_related(Prefetch("upstreams", enabled, to_attr="enabled"))
    )
    networks = list(followed[:READ])
    statuses = FollowerStatus.objects.in_bulk([network.pk for network in networks])
    found = []
    for network in networks:
        status = statuses.get(network.pk)
        found += _of_network(network, status, now)
        best = status.best_number if status else None
        for upstream in network.enabled:  # type: ignore[attr-defined]  # see Prefetch
            found += _of_upstream(network, upstream, best, now)
    return found


@dataclass(frozen=True, slots=True)
class RunningDeletion:
    """A deletion that is not finished. percent: the deleted share of all rows."""

    deletion: NetworkDeletion
    percent: int


def running_deletions() -> list[RunningDeletion]:
    """Return the deletions of networks that are not finished."""
    running = NetworkDeletion.objects.filter(network__isnull=False)[:READ]
    return [RunningDeletion(one, percent_of(one)) for one in running]


def percent_of(deletion: NetworkDeletion) -> int:
    """Return the share of rows that a deletion has deleted, as a percentage."""
    tables = decode(deletion.tables)
    if deletion.finished_at is not None:
        return 100
    about = sum(max(table.about, table.deleted) for table in tables)
    deleted = sum(
        max(table.about, table.deleted) if table.is_done else table.deleted
        for table in tables
    )
    return min(99, 100 * deleted // about) if about else 0


def _of_network(
    network: Network, status: FollowerStatus | None, now: datetime
) -> list[Trouble]:
    if status is None or status.updated_at < now - SILENT:
        last = f"last status {status.updated_at:%Y-%m-%d %H:%M} UTC" if status else ""
        return [Trouble(network, "The follower is not running", last)]
    if status.alarm:
        return [Trouble(network, "New blocks are not imported", _short(status.alarm))]
    behind = blocks_behind(network, status, now) or 0
    if behind >= BLOCKS_BEHIND and not network.is_preparing:
        return [Trouble(network, "Lagging", f"{behind:,} blocks behind")]
    return []


def _of_upstream(
    network: Network, upstream: Upstream, best: int | None, now: datetime
) -> list[Trouble]:
    status: UpstreamStatus | None = getattr(upstream, "status", None)
    if status is None:
        return []
    head = status.head_number
    behind = max(0, best - head) if head is not None and best is not None else 0
    state = upstream_state(upstream, status, behind, now)
    if state not in _BAD:
        return []
    detail = f"{behind:,} blocks behind" if state == "behind" else status.last_error
    return [Trouble(network, f"Upstream {upstream}: {state}", _short(detail))]


def _short(text: str) -> str:
    line = " ".join(visible(text).split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"
