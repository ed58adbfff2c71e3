"""What the list of keys tells of them."""

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

    versions: its secrets that open. networks: those it opens, empty for all.
    plan: the one whose limits hold, None where there are no plans.
    credits_today: since midnight UTC.
    """

    key: ApiKey
    state: State
    versions: list[KeyVersion]
    networks: list[Network]
    last_used_at: datetime | None
    plan: Plan | None
    credits_today: int


def key_lines(keys: Iterable[ApiKey]) -> list[KeyLine]:
    """Return what is told of keys whose owner, secrets and networks are prefetched."""
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
    """Return when one of some secrets was last used; their uses may be prefetched."""
    uses = [version.use.last_used_at for version in versions if hasattr(version, "use")]
    return max(uses, default=None)
