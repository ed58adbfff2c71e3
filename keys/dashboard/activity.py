"""A key's audit log, as shown to its owner."""

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
"""Lines on a page."""

MAX_ROWS = 10_000
"""Most rows of a CSV file. It contains the newest events."""

_NUMBERS = ("request", "version")
"""Internal ids in an event's data, which are not shown."""

_HEADER = ("time (UTC)", "event", "by", "address", "details")


class Line(NamedTuple):
    """An event as text.

    by: you, support, or the service.
    address: the client's IP address, empty if support made the change.
    details: pairs of field name and value.
    """

    event: KeyEvent
    by: str
    address: str
    details: list[tuple[str, str]]


@dashboard_page
@require_safe
def activity(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one page of the log, the newest events first."""
    key = own_key(request, pk)
    page = Paginator(_events(key), LINES).get_page(request.GET.get("page"))
    context = {"key": key, "page": page, "lines": [_line(e, key) for e in page]}
    return render(request, "dashboard/activity.html", context)


@dashboard_page
@require_safe
def activity_csv(request: HttpRequest, pk: int) -> HttpResponse:
    """Send the log as a CSV file."""
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
    """Escape a text that a spreadsheet would interpret as a formula.

    Source: https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _events(key: ApiKey) -> QuerySet[KeyEvent]:
    return KeyEvent.objects.filter(api_key=key).for_customers()


def _line(event: KeyEvent, key: ApiKey) -> Line:
    """Convert an event to text, without the name and IP address of support staff."""
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
    """Return a value of an event as text. Times are in UTC, to the minute."""
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
