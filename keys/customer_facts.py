"""The keys and the usage of a customer, for the customer's page in the admin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Prefetch, Sum

from keys.models import ApiKey, DailyUse, KeyLimits, KeyVersion, User
from keys.states import State, live_versions, state_of
from keys.usage.daily import credits_today, today

SHOWN_KEYS = 50
"""Number of keys on the page, the newest first. Usage is summed over these keys."""

DAYS = 30
"""Number of days over which usage is summed."""


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A key of the customer."""

    key: ApiKey
    hints: str
    state: State
    plan: str
    credits_today: int
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class CustomerFacts:
    """Keys and usage of a customer.

    has_more: whether the customer has older keys, which are not listed.
    calls, failed, credits: sums of the last DAYS days.
    """

    keys: list[KeyFacts]
    has_more: bool
    calls: int
    failed: int
    credits: int


def customer_facts(user: User) -> CustomerFacts:
    """Return the keys of a customer that were not deleted, and their usage."""
    versions = KeyVersion.objects.select_related("use")
    kept = ApiKey.objects.kept().filter(owner=user).select_related("owner")
    found = list(
        kept.prefetch_related(Prefetch("versions", versions))[: SHOWN_KEYS + 1]
    )
    keys = found[:SHOWN_KEYS]
    ids = [key.pk for key in keys]
    limits = KeyLimits.objects.select_related("plan").in_bulk(ids)
    spent = credits_today(keys)
    since = today() - timedelta(days=DAYS - 1)
    used = DailyUse.objects.filter(day__gte=since, api_key__in=ids).aggregate(
        calls=Sum("calls", default=0),
        failed=Sum("failed", default=0),
        credits=Sum("credits", default=0),
    )
    return CustomerFacts(
        keys=[_facts(key, limits.get(key.pk), spent.get(key.pk, 0)) for key in keys],
        has_more=len(found) > SHOWN_KEYS,
        calls=int(used["calls"]),
        failed=int(used["failed"]),
        credits=int(used["credits"]),
    )


def _facts(key: ApiKey, limits: KeyLimits | None, spent: int) -> KeyFacts:
    uses = [v.use.last_used_at for v in key.versions.all() if hasattr(v, "use")]
    return KeyFacts(
        key=key,
        hints=", ".join(version.hint for version in live_versions(key)),
        state=state_of(key),
        plan=str(limits) if limits else "the default plan",
        credits_today=spent,
        last_used_at=max(uses, default=None),
    )
