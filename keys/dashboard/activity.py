"""A key's audit log, as shown to the members of its account."""

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

from keys.accounts.acting import Acting, acting_of
from keys.dashboard.access import dashboard_page, own_key
from keys.models import ApiKey, EventType, KeyEvent, Role

LINES = 20
"""Lines on a page. A phone shows about five at a time."""

MAX_ROWS = 10_000
"""Maximum number of rows of a CSV file. It contains the newest events."""

_NUMBERS = ("request", "version")
"""Internal ids in an event's data, which are not shown."""

_HEADER = ("time (UTC)", "event", "by", "address", "details")


class Line(NamedTuple):
    """An event as text.

    by: you, another member's email address, support, or the service.
    role: the role in which another member made the change, or "".
    address: the client's IP address, empty if support made the change. Only owners see
        those of other members.
    details: pairs of field name and value.
    """

    event: KeyEvent
    by: str
    role: str
    address: str
    details: list[tuple[str, str]]


@dashboard_page
@require_safe
def activity(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one page of the log, the newest events first."""
    key = own_key(request, pk)
    page = Paginator(_events(key), LINES).get_page(request.GET.get("page"))
    acting = acting_of(request)
    context = {"key": key, "page": page, "lines": [_line(e, acting) for e in page]}
    return render(request, "dashboard/activity.html", context)


@dashboard_page
@require_safe
def activity_csv(request: HttpRequest, pk: int) -> HttpResponse:
    """Send the log as a CSV file."""
    key = own_key(request, pk)
    acting = acting_of(request)
    name = f"activity-{key.pk}.csv"
    response = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
    writer = csv.writer(response)
    writer.writerow(_HEADER)
    for event in _events(key)[:MAX_ROWS]:
        line = _line(event, acting)
        details = "; ".join(f"{word}: {value}" for word, value in line.details)
        moment = f"{event.at:%Y-%m-%d %H:%M:%S}"
        by = f"{line.by} ({line.role})" if line.role else line.by
        cells = (moment, event.type, by, line.address, details)
        writer.writerow(map(plain_cell, cells))
    return response


def plain_cell(text: str) -> str:
    """Escape a text that a spreadsheet would interpret as a formula.

    Source: https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _events(key: ApiKey) -> QuerySet[KeyEvent]:
    events = KeyEvent.objects.filter(api_key=key).for_customers()
    return events.select_related("actor")


def _line(event: KeyEvent, acting: Acting) -> Line:
    """Convert an event to text, without the name and IP address of support staff."""
    details = list(_details(event))
    is_customer = event.actor_id == acting.account.pk or bool(event.actor_role)
    if event.actor is None:
        return Line(event, "the service", "", event.actor_ip or "", details)
    if not is_customer:
        return Line(event, "support", "", "", details)
    is_self = event.actor_id == acting.user.pk
    may_see = is_self or acting.may_manage
    address = event.actor_ip or "" if may_see else ""
    if is_self:
        return Line(event, "you", "", address, details)
    role = event.actor_role or Role.OWNER
    return Line(event, event.actor.email, role, address, details)


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
    if value is not None and word.endswith(("_at", "_until")):
        moment = datetime.fromisoformat(value).astimezone(UTC)
        return f"{moment:%Y-%m-%d %H:%M} UTC"
    return "" if value is None else str(value)
