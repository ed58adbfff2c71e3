"""Changes of what keys may spend."""

from __future__ import annotations

from django.db import connection, transaction

from keys.models import ApiKey, EventType, KeyLimits, Plan
from keys.services.events import SYSTEM, Actor, lock, record

_FIELDS = ("credits_per_second", "burst", "credits_per_day")


@transaction.atomic
def set_limits(
    *,
    api_key: ApiKey,
    plan: Plan | None = None,
    credits_per_second: int | None = None,
    burst: int | None = None,
    credits_per_day: int | None = None,
    actor: Actor = SYSTEM,
) -> KeyLimits:
    """Give a key a plan, and terms of its own; these ones and none of earlier ones.

    plan: None for the default one. The others: None for the plan's.
    Raises: ValidationError.
    """
    api_key = lock(api_key)
    limits = KeyLimits.objects.filter(api_key=api_key).first()
    before = None if limits is None else _as_data(limits)
    limits = KeyLimits(
        api_key=api_key,
        plan=plan,
        credits_per_second=credits_per_second,
        burst=burst,
        credits_per_day=credits_per_day,
    )
    limits.full_clean(validate_unique=False)
    limits.save()
    after = _as_data(limits)
    if after != before:
        record(api_key, EventType.LIMITS_CHANGED, actor, before=before, after=after)
    return limits


@transaction.atomic
def set_plan(
    *,
    slug: str,
    name: str,
    credits_per_second: int | None = None,
    burst: int | None = None,
    credits_per_day: int | None = None,
    is_default: bool = False,
) -> tuple[Plan, bool]:
    """Have a plan be this, and return whether it is new.

    is_default: whether it holds for keys that were given no plan; one plan does.
    Raises: ValidationError, also when another plan is the default one.
    """
    # Of two at once the later one sees the other's. Whoever reads plans, or gives one to a
    # key, does not wait.
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE keys_plan IN SHARE ROW EXCLUSIVE MODE")
    plan = Plan.objects.filter(slug=slug).first()
    is_new = plan is None
    plan = plan or Plan(slug=slug)
    plan.name = name
    plan.credits_per_second = credits_per_second
    plan.burst = burst
    plan.credits_per_day = credits_per_day
    plan.is_default = is_default
    plan.full_clean()
    plan.save()
    return plan, is_new


def _as_data(limits: KeyLimits) -> dict[str, str | int | None]:
    """Return limits as events hold them."""
    terms = {field: getattr(limits, field) for field in _FIELDS}
    return {"plan": limits.plan.slug if limits.plan else None, **terms}
