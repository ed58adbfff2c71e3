"""Recent rejections of calls by reason, with the remedies of `/docs/errors`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter

from django.utils import timezone

from jsonrpc.errors import error_classes
from keys.models import ApiKey, Refusal

SHOWN_DAYS = 7
"""Age in days of the oldest rejections shown."""

MAX_SHOWN = 20
"""Most reasons shown, the latest first."""


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """A reason with its remedy. remedy: "" for a reason of a former version."""

    refusal: Refusal
    remedy: str


def latest_refusals(key: ApiKey) -> list[RefusalLine]:
    """Return the reasons of the last SHOWN_DAYS days, the latest first."""
    since = timezone.now() - timedelta(days=SHOWN_DAYS)
    found = Refusal.objects.filter(api_key=key, last_at__gt=since)
    remedies = remedies_by_reason()
    return [
        RefusalLine(refusal, remedies.get(refusal.reason, ""))
        for refusal in found.select_related("network")[:MAX_SHOWN]
    ]


def remedies_by_reason() -> dict[str, str]:
    """Return the remedies of errors by `data.reason`.

    Several errors have the reason `response_too_large`. That of `jsonrpc` is the general one.
    """
    found: dict[str, str] = {}
    for error in sorted(error_classes(), key=attrgetter("__module__")):
        if error.reason:
            found.setdefault(error.reason, error.remedy)
    return found
