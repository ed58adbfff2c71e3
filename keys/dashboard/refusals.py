"""Recent rejections of calls by reason, with the remedies of `/docs/errors`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter

from django.urls import reverse
from django.utils import timezone

from jsonrpc.errors import error_classes
from keys.models import ApiKey, Refusal

SHOWN_DAYS = 7
"""Age in days of the oldest rejections shown."""

MAX_SHOWN = 20
"""Most reasons shown, the latest first."""


PAGES = {
    "contract_not_allowed": ("allowlists", "Edit the allowlists"),
    "ip_not_allowed": ("allowlists", "Edit the allowlists"),
    "method_not_allowed": ("allowlists", "Edit the allowlists"),
    "method_not_entitled": ("tracing", "Request access"),
    "origin_not_allowed": ("allowlists", "Edit the allowlists"),
    "tracer_not_entitled": ("tracing", "Request access"),
    "user_agent_not_allowed": ("allowlists", "Edit the allowlists"),
}
"""Names of the pages of a key on which a reason is removed, with the texts of their links."""


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """A reason with its remedy. remedy: "" for a reason of a former version.

    page, link: path and text of a link to the page of the remedy, or "".
    """

    refusal: Refusal
    remedy: str
    page: str = ""
    link: str = ""


def latest_refusals(key: ApiKey) -> list[RefusalLine]:
    """Return the reasons of the last SHOWN_DAYS days, the latest first."""
    since = timezone.now() - timedelta(days=SHOWN_DAYS)
    found = Refusal.objects.filter(api_key=key, last_at__gt=since)
    remedies = remedies_by_reason()
    return [
        _line(refusal, remedies.get(refusal.reason, ""))
        for refusal in found.select_related("network")[:MAX_SHOWN]
    ]


def _line(refusal: Refusal, remedy: str) -> RefusalLine:
    if refusal.reason not in PAGES:
        return RefusalLine(refusal, remedy)
    name, link = PAGES[refusal.reason]
    page = reverse(f"dashboard:{name}", args=[refusal.api_key_id])
    return RefusalLine(refusal, remedy, page, link)


def remedies_by_reason() -> dict[str, str]:
    """Return the remedies of errors by `data.reason`.

    Several errors have the reason `response_too_large`. That of `jsonrpc` is the general one.
    """
    found: dict[str, str] = {}
    for error in sorted(error_classes(), key=attrgetter("__module__")):
        if error.reason:
            found.setdefault(error.reason, error.remedy)
    return found
