"""Usage of the current day (UTC): quotas, lists of keys, the busiest keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.utils import timezone

from keys.agreements import agreement_of
from keys.charts.words import share
from keys.models import ApiKey, DailyUse

NEAR = 0.8
"""Share of a quota from which it is highlighted."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The credits that a key has spent today, with a delay of some seconds."""

    spent: int
    limit: int | None
    """Credits a day, or None without a daily limit."""
    resets_at: datetime

    @property
    def left(self) -> int | None:
        """Credits left, or None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.spent)

    @property
    def shown(self) -> int:
        """Value of the progress bar."""
        return self.spent if self.limit is None else min(self.spent, self.limit)

    @property
    def is_near(self) -> bool:
        """Whether the key has spent the share `NEAR` of its quota."""
        return self.limit is not None and self.spent >= NEAR * self.limit

    @property
    def is_over(self) -> bool:
        """Whether no credits are left."""
        return self.left == 0

    @property
    def words(self) -> str:
        """The quota as text."""
        if self.limit is None:
            return f"{self.spent:,} credits, no daily quota"
        part = share(self.spent, self.limit)
        return f"{self.spent:,} of {self.limit:,} credits ({part})"


def credits_today(keys: Iterable[ApiKey]) -> dict[int, int]:
    """Return the credits spent today, by key id. Unused keys are absent."""
    used = DailyUse.objects.filter(day=today(), api_key__in=[key.pk for key in keys])
    return dict(used.values_list("api_key_id", "credits"))


def quota_of(api_key: ApiKey) -> Quota:
    """Return a key's quota and the credits that it has spent today."""
    limits = agreement_of(api_key).limits
    midnight = datetime.combine(today(), datetime.min.time(), UTC)
    return Quota(
        spent=credits_today([api_key]).get(api_key.pk, 0),
        limit=None if limits is None else limits.daily,
        resets_at=midnight + timedelta(days=1),
    )


def today() -> date:
    """Return the current date in UTC."""
    return timezone.now().astimezone(UTC).date()
