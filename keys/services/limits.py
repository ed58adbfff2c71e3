"""Changes of plans and of keys' limits."""

from __future__ import annotations

from django.db import connection, transaction

from keys.models import ApiKey, EventType, KeyLimits, Plan
from keys.services.events import SYSTEM, Actor, announce_plan, lock, record

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
    """Set a key's plan and its own terms, which replace earlier ones.

    plan: None for the default plan.
    credits_per_second, burst, credits_per_day: None for the plan's limit.

    Raises: ValidationError for an invalid value, and if the key was deleted.
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
    """Create a plan or replace its limits. Return the plan and whether it is new.

    is_default: whether the plan applies to keys without a plan.

    Raises: ValidationError for an invalid value, and if another plan is the default.
    """
    # Serializes concurrent changes of plans. Reading plans and assigning them to keys do
    # not wait for this lock.
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
    announce_plan(plan)
    return plan, is_new


def _as_data(limits: KeyLimits) -> dict[str, str | int | None]:
    """Return limits in the format of an event's data."""
    terms = {field: getattr(limits, field) for field in _FIELDS}
    return {"plan": limits.plan.slug if limits.plan else None, **terms}
