"""Summaries of keys for the list of keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from keys.agreements import agreements
from keys.models import ApiKey, KeyVersion, Plan
from keys.states import State, live_versions, state_of
from keys.usage.daily import credits_today
from networks.models import Network


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key in the list of keys.

    versions: its valid secrets.
    networks: those that it grants access to, empty for all.
    plan: the plan whose limits apply, or None if there are no plans.
    credits_today: credits used since midnight UTC.
    """

    key: ApiKey
    state: State
    versions: list[KeyVersion]
    networks: list[Network]
    last_used_at: datetime | None
    plan: Plan | None
    credits_today: int


def key_lines(keys: Iterable[ApiKey]) -> list[KeyLine]:
    """Return summaries of keys whose owner, secrets and networks are prefetched."""
    found = list(keys)
    credits, agreed = credits_today(found), agreements(found)
    return [
        KeyLine(
            key=key,
            state=state_of(key),
            versions=live_versions(key),
            networks=list(key.networks.all()),
            last_used_at=last_used_at(key.versions.all()),
            plan=agreed[key.pk].plan,
            credits_today=credits.get(key.pk, 0),
        )
        for key in found
    ]


def last_used_at(versions: Iterable[KeyVersion]) -> datetime | None:
    """Return the time at which any of the secrets was last used, or None."""
    uses = [version.use.last_used_at for version in versions if hasattr(version, "use")]
    return max(uses, default=None)
