"""The plans and terms of keys, and the limits that result from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keys.limiter.gcra import Limits
from keys.models import ApiKey, KeyLimits, Plan
from keys.plans import Terms, effective_limits


@dataclass(frozen=True, slots=True)
class Agreement:
    """The plan and the own terms of a key.

    plan: the assigned plan, otherwise the default plan. None without either.
    own: the key's own terms.
    is_named: whether the plan was assigned, and is not the default.
    """

    plan: Plan | None
    own: Terms
    is_named: bool

    @property
    def limits(self) -> Limits | None:
        """The key's limits, or None without any."""
        return effective_limits(self.own, terms_of(self.plan))

    @property
    def has_own_terms(self) -> bool:
        """Return whether something differs from the plan."""
        return self.own != Terms()


def agreement_of(api_key: ApiKey) -> Agreement:
    """Return the plan and the own terms of a key."""
    return agreements([api_key])[api_key.pk]


def agreements(keys: Iterable[ApiKey]) -> dict[int, Agreement]:
    """Return the agreements of several keys, by key id. Uses two queries."""
    ids = [key.pk for key in keys]
    special = KeyLimits.objects.filter(api_key__in=ids).select_related("plan")
    found = {limits.api_key_id: limits for limits in special}
    default = Plan.objects.filter(is_default=True).first()
    return {pk: _agreement(found.get(pk), default) for pk in ids}


def terms_of(fields: KeyLimits | Plan | None) -> Terms:
    """Return the terms of a plan or a key. None: empty terms."""
    if fields is None:
        return Terms()
    return Terms(fields.credits_per_second, fields.burst, fields.credits_per_day)


def _agreement(own: KeyLimits | None, default: Plan | None) -> Agreement:
    plan = None if own is None else own.plan
    return Agreement(plan or default, terms_of(own), plan is not None)
