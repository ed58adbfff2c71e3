"""Facts about keys and calls that staff should know, for the admin's first page.

Each query reads an index and few rows. `within` limits its time as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from django.db import OperationalError, connection, transaction
from django.db.models import Max, QuerySet, Sum

from keys.charts.windows import floor
from keys.models import (
    AccessRequest,
    AccessStatus,
    ApiKey,
    DailyUse,
    Outcome,
    Span,
    UsageTotal,
)
from keys.usage.daily import NEAR, today
from networks.models import Network

SHOWN = 8
"""Maximum number of rows of each list."""

COUNTED = 1_000
"""Maximum number of requests that are counted."""

ERROR_HOURS = 24
"""Hours in which calls that failed are counted."""

FAILED = (Outcome.SERVER_ERROR, Outcome.TIMEOUT)
"""Outcomes that staff have to look into, because they are no fault of the caller."""

_Found = TypeVar("_Found")


def within(milliseconds: int, read: Callable[[], _Found]) -> _Found | None:
    """Return the result of queries, or None if one takes longer than a limit."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout')")
        (before,) = cursor.fetchone() or ("0",)
        try:
            with transaction.atomic():
                _limit(f"{milliseconds}ms")
                found = read()
                _limit(str(before))
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") != "57014":  # query_canceled
                raise
            return None
    return found


def _limit(timeout: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [timeout])


@dataclass(frozen=True, slots=True)
class Queue:
    """The pending requests for access, the oldest first. count: up to COUNTED."""

    oldest: list[AccessRequest]
    count: int


def open_requests() -> Queue:
    """Return the requests for access that wait for a decision."""
    pending = AccessRequest.objects.filter(status=AccessStatus.PENDING)
    oldest = pending.order_by("id").select_related("api_key__owner", "network")
    return Queue(
        list(oldest.prefetch_related("api_key__versions")[:SHOWN]),
        pending.order_by("-id").values("pk")[:COUNTED].count(),
    )


@dataclass(frozen=True, slots=True)
class NearLimit:
    """A key that has spent most of its daily quota. credits, quota: of today."""

    key: ApiKey
    credits: int
    quota: int

    @property
    def percent(self) -> int:
        """Spent credits as a percentage of the quota."""
        return 100 * self.credits // self.quota


_NEAR = """
    (SELECT used.api_key_id, used.credits, plan.credits_per_day AS quota
    FROM keys_plan AS plan
    CROSS JOIN LATERAL (
        SELECT used.api_key_id, used.credits
        FROM keys_dailyuse AS used
        LEFT JOIN keys_keylimits AS own ON own.api_key_id = used.api_key_id
        WHERE used.day = %(day)s
            AND used.credits >= ceil(%(share)s * plan.credits_per_day)::int8
            AND own.credits_per_day IS NULL
            AND (own.plan_id = plan.id OR own.plan_id IS NULL AND plan.is_default)
        ORDER BY used.credits DESC LIMIT %(shown)s
    ) AS used)
    UNION ALL
    (SELECT used.api_key_id, used.credits, own.credits_per_day
    FROM keys_keylimits AS own
    CROSS JOIN LATERAL (
        SELECT used.api_key_id, used.credits FROM keys_dailyuse AS used
        WHERE used.day = %(day)s AND used.api_key_id = own.api_key_id
        OFFSET 0
    ) AS used
    WHERE own.credits_per_day IS NOT NULL
        AND used.credits >= %(share)s * own.credits_per_day
    ORDER BY used.credits DESC LIMIT %(shown)s)
    ORDER BY credits DESC LIMIT %(shown)s
"""
# For each plan, the index on day and credits finds the keys that have spent enough. Keys
# with their own quota are few, and are looked up one by one.


def keys_near_limits() -> list[NearLimit]:
    """Return keys that have spent the share NEAR of their daily quota, or more.

    Those that have spent the most credits come first.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEAR, {"day": today(), "share": NEAR, "shown": SHOWN})
        rows = cursor.fetchall()
    keys = _labelled(ApiKey.objects.all()).in_bulk([row[0] for row in rows])
    return [
        NearLimit(keys[key_id], int(spent), int(quota))
        for key_id, spent, quota in rows
        if key_id in keys
    ]


def busiest_keys() -> list[DailyUse]:
    """Return the keys that have spent the most credits today."""
    used = DailyUse.objects.filter(day=today()).order_by("-credits")
    ids = list(used.values_list("pk", flat=True)[:SHOWN])
    busiest = used.filter(pk__in=ids).select_related("api_key__owner")
    return list(busiest.prefetch_related("api_key__versions"))


@dataclass(frozen=True, slots=True)
class Failures:
    """Calls of a method on a network that failed in the last ERROR_HOURS.

    outcome: one of FAILED. last_at: the minute or hour of the last one.
    """

    network: Network
    method: str
    outcome: Outcome
    calls: int
    last_at: datetime


def recent_failures(now: datetime) -> list[Failures]:
    """Return the methods with the most calls that failed, from the totals by hour."""
    since = floor(now - timedelta(hours=ERROR_HOURS), timedelta(hours=1))
    failed = UsageTotal.objects.filter(
        span=Span.HOUR, start__gte=since, outcome__in=FAILED
    )
    groups = failed.values("network", "method", "outcome").annotate(
        failed=Sum("calls"), last=Max("start")
    )
    rows = list(groups.order_by("-failed")[:SHOWN])
    networks = Network.objects.in_bulk([row["network"] for row in rows])
    return [
        Failures(
            networks[row["network"]],
            row["method"],
            Outcome(row["outcome"]),
            int(row["failed"]),
            row["last"],
        )
        for row in rows
        if row["network"] in networks
    ]


@dataclass(frozen=True, slots=True)
class Today:
    """Sums of today's calls (UTC), of all keys."""

    calls: int
    failed: int
    credits: int


def sums_of_today() -> Today:
    """Return today's sums, from the totals of all keys."""
    midnight = datetime.combine(today(), datetime.min.time(), UTC)
    rows = UsageTotal.objects.filter(span=Span.DAY, start=midnight)
    whole = rows.aggregate(
        calls=Sum("calls", default=0), credits=Sum("credits", default=0)
    )
    failed = rows.exclude(outcome=Outcome.OK).aggregate(calls=Sum("calls", default=0))
    return Today(int(whole["calls"]), int(failed["calls"]), int(whole["credits"]))


def _labelled(keys: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    return keys.select_related("owner").prefetch_related("versions")
