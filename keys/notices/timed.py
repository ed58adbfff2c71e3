"""Notices about quotas that are nearly used, and about keys and grants that expire."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from keys.models import (
    ApiKey,
    DailyUse,
    Entitlement,
    KeyVersion,
    Notice,
    NoticeKind,
    Plan,
    Refusal,
)
from keys.notices.queue import moment, queue
from keys.states import State, in_state, live_versions

DAYS = (1, 7)
"""Days before an expiry at which a notice is sent, in ascending order."""

BATCH = 1_000
"""Most keys that one check notifies about a quota. The next check continues."""

_DAY = timedelta(days=1)


def queue_timed(now: datetime) -> int:
    """Queue the notices that are due, and return their number."""
    return _queue_quotas(now) + _queue_keys(now) + _queue_grants(now)


def _queue_quotas(now: datetime) -> int:
    """Queue notices about the daily quotas (UTC). After 100 %, that of 80 % is omitted."""
    midnight = datetime.combine(now.astimezone(UTC).date(), datetime.min.time(), UTC)
    count = 0
    for percent in (100, 80):
        uses = list(_used(midnight, percent)[:BATCH])
        for use in uses:
            count += queue(
                api_key=use.api_key,
                kind=NoticeKind.QUOTA,
                mark=_quota_mark(midnight, percent),
                subject=f"{use.api_key}: {percent} % of today's quota is used",
                template="quota.txt",
                facts={
                    "percent": percent,
                    "spent": f"{use.credits:,}",
                    "limit": f"{use.daily:,}",
                },
                until=midnight + _DAY,
                is_timed=True,
            )
        if len(uses) == BATCH:
            break  # keys that have used 100 % may remain, and get no notice of 80 %
    return count


def _used(midnight: datetime, percent: int) -> QuerySet[DailyUse, Any]:
    """Return the uses of a day that have reached a share of the quota, and no notice."""
    default = Plan.objects.filter(is_default=True).first()
    of_default = None if default is None else default.credits_per_day
    of_plan = Case(
        When(
            api_key__limits__plan__isnull=False,
            then=F("api_key__limits__plan__credits_per_day"),
        ),
        default=Value(of_default, BigIntegerField()),
    )
    daily = Coalesce("api_key__limits__credits_per_day", of_plan)
    used = DailyUse.objects.filter(
        day=midnight.date(), api_key__deleted_at=None, api_key__owner__is_active=True
    ).annotate(daily=daily)
    used = used.filter(daily__isnull=False)
    share = ExpressionWrapper(F("daily") * percent / 100, BigIntegerField())
    reached = Q(credits__gte=share)
    if percent == 100:
        # The last credits are too few for a call, so that they are never spent.
        reached |= Q(
            Exists(
                Refusal.objects.filter(
                    api_key=OuterRef("api_key"),
                    reason="daily_quota",
                    last_at__gte=midnight,
                )
            )
        )
    sent = Notice.objects.filter(
        api_key=OuterRef("api_key"),
        kind=NoticeKind.QUOTA,
        mark__in=[_quota_mark(midnight, each) for each in {percent, 100}],
    )
    found = used.filter(reached).exclude(Exists(sent))
    return found.select_related("api_key__owner").order_by("pk")


def _quota_mark(midnight: datetime, percent: int) -> str:
    return f"{midnight:%Y-%m-%d} {percent}"


def _queue_keys(now: datetime) -> int:
    """Queue notices about keys whose last secret expires."""
    expiring = in_state(ApiKey.objects.all(), State.EXPIRING)
    secrets = Prefetch("versions", KeyVersion.objects.filter(revoked_at=None))
    keys = expiring.select_related("owner").prefetch_related(secrets, "notices")
    count = 0
    for api_key in keys.iterator(chunk_size=200):
        versions = live_versions(api_key)
        ends = [_end(api_key, version) for version in versions]
        if not ends:
            continue
        end, began = max(ends), max(version.created_at for version in versions)
        for days, mark in _due(api_key, NoticeKind.EXPIRY, "", end, began, now):
            count += queue(
                api_key=api_key,
                kind=NoticeKind.EXPIRY,
                mark=mark,
                subject=f"{api_key} expires in {_days(days)}",
                template="key_expiring.txt",
                facts={
                    "end": moment(end),
                    "is_renewable": api_key.expires_at is None
                    or api_key.expires_at > end,
                },
                until=end,
                is_timed=True,
            )
    return count


def _queue_grants(now: datetime) -> int:
    """Queue notices about grants of tracing that expire."""
    expiring = Entitlement.objects.filter(
        expires_at__gt=now,
        expires_at__lte=now + DAYS[-1] * _DAY,
        api_key__deleted_at=None,
        api_key__is_enabled=True,
    )
    found = expiring.select_related("api_key__owner", "network")
    count = 0
    for granted in found.prefetch_related("api_key__notices").iterator(chunk_size=200):
        end = granted.expires_at
        assert end is not None
        place = f"{granted.network_id} "
        for days, mark in _due(
            granted.api_key, NoticeKind.TRACING, place, end, granted.granted_at, now
        ):
            count += queue(
                api_key=granted.api_key,
                kind=NoticeKind.TRACING,
                mark=mark,
                subject=f"Tracing on {granted.network.name} expires in {_days(days)}",
                template="tracing_expiring.txt",
                facts={"network": granted.network.name, "end": moment(end)},
                until=end,
                is_timed=True,
            )
    return count


def _due(
    api_key: ApiKey,
    kind: NoticeKind,
    place: str,
    end: datetime,
    began: datetime,
    now: datetime,
) -> Iterator[tuple[int, str]]:
    """Yield the days and the mark of the notice that is due before an expiry, if any.

    began: when the term began. A term that is not longer than the days has no notice,
        because the customer has just learned of its end.
    """
    days = next((days for days in DAYS if end - now <= days * _DAY), None)
    if days is None or began > end - days * _DAY:
        return
    mark = f"{place}{end:%Y-%m-%dT%H:%M:%S} {days}"
    if not any(one.kind == kind and one.mark == mark for one in api_key.notices.all()):
        yield days, mark


def _end(api_key: ApiKey, version: KeyVersion) -> datetime:
    """Return the expiry of a secret of an expiring key."""
    ends = [end for end in (api_key.expires_at, version.expires_at) if end is not None]
    return min(ends)


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"
