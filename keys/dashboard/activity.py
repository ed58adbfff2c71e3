"""The log of what has become of a key, as its owner may read it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from keys.dashboard.access import dashboard_page, own_key
from keys.models import ApiKey, EventType, KeyEvent

LINES = 50
"""On a page."""

MAX_ROWS = 10_000
"""Of a file, the newest ones."""

_NUMBERS = ("request", "version")
"""What only the database understands."""

_HEADER = ("time (UTC)", "event", "by", "address", "details")


class Line(NamedTuple):
    """An event in words.

    by: you, support, or the service. address: yours, or whose a revoked secret's is.
    details: what was changed, by words.
    """

    event: KeyEvent
    by: str
    address: str
    details: list[tuple[str, str]]


@dashboard_page
@require_safe
def activity(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the log, the newest first, some lines at a time."""
    key = own_key(request, pk)
    page = Paginator(_events(key), LINES).get_page(request.GET.get("page"))
    context = {"key": key, "page": page, "lines": [_line(e, key) for e in page]}
    return render(request, "dashboard/activity.html", context)


@dashboard_page
@require_safe
def activity_csv(request: HttpRequest, pk: int) -> HttpResponse:
    """Give the log as a file."""
    key = own_key(request, pk)
    name = f"activity-{key.pk}.csv"
    response = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
    writer = csv.writer(response)
    writer.writerow(_HEADER)
    for event in _events(key)[:MAX_ROWS]:
        line = _line(event, key)
        details = "; ".join(f"{word}: {value}" for word, value in line.details)
        moment = f"{event.at:%Y-%m-%d %H:%M:%S}"
        cells = (moment, event.type, line.by, line.address, details)
        writer.writerow(map(plain_cell, cells))
    return response


def plain_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula.

    Source: https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _events(key: ApiKey) -> QuerySet[KeyEvent]:
    return KeyEvent.objects.filter(api_key=key).for_customers()


def _line(event: KeyEvent, key: ApiKey) -> Line:
    """Put an event into words; who of staff it was, and where, is the provider's own."""
    is_own = event.actor_id == key.owner_id
    by = "you" if is_own else "support" if event.actor_id else "the service"
    address = "" if by == "support" else event.actor_ip or ""
    return Line(event, by, address, list(_details(event)))


def _details(event: KeyEvent) -> Iterator[tuple[str, str]]:
    for word, value in event.data.items():
        if event.type == EventType.UPDATED:  # [before, after]
            shown = " → ".join(_shown(word, one) or "none" for one in value)
        else:
            shown = _shown(word, value)
        if shown and word not in _NUMBERS:
            yield word.replace("_", " "), shown


def _shown(word: str, value: Any) -> str:
    """Return a value of an event as people read it; moments in UTC, to the minute."""
    if isinstance(value, dict):
        pairs = [(name, _shown(name, one)) for name, one in value.items()]
        return ", ".join(
            f"{name.replace('_', ' ')} {one}" for name, one in pairs if one
        )
    if isinstance(value, list):
        return ", ".join(_shown(word, one) for one in value)
    if value is not None and word.endswith("_at"):
        moment = datetime.fromisoformat(value).astimezone(UTC)
        return f"{moment:%Y-%m-%d %H:%M} UTC"
    return "" if value is None else str(value)
