"""Command-line arguments shared by several commands."""

from __future__ import annotations

from datetime import UTC, datetime

from django.core.management.base import CommandError

from keys.models import KeyVersion, Plan
from keys.selectors import get_key_version


def read_key(text: str) -> KeyVersion:
    """Return the key version with this key or hint.

    Raises: CommandError if there is none, or more than one.
    """
    try:
        return get_key_version(text)
    except KeyVersion.DoesNotExist:
        raise CommandError("no API key has this secret or hint") from None
    except KeyVersion.MultipleObjectsReturned:
        raise CommandError(
            "several secrets have this hint: pass the whole secret"
        ) from None


def read_plan(slug: str | None) -> Plan | None:
    """Return the plan with this slug; None if no slug was given.

    Raises: CommandError naming the plans that exist.
    """
    if slug is None:
        return None
    plans = {plan.slug: plan for plan in Plan.objects.order_by("slug")}
    if slug not in plans:
        known = (
            f"the plans are {', '.join(plans)}" if plans else "there are no plans yet"
        )
        raise CommandError(f"there is no plan {slug!r}; {known}")
    return plans[slug]


def read_moment(text: str | None) -> datetime | None:
    """Parse an ISO 8601 date and time. Without an offset, it is in UTC.

    Raises: CommandError if the text is malformed.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{text!r} is not an ISO 8601 date or time, such as 2026-12-31T12:00Z"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
