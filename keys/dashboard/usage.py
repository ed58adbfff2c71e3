"""A key's usage: charts, totals, and CSV export."""

from __future__ import annotations

from datetime import datetime

from django.core.paginator import Paginator
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from keys.dashboard.access import dashboard_page, own_key
from keys.models import ApiKey
from keys.usage.daily import quota_of
from keys.usage.failures import failures_of
from keys.usage.panel import Chosen, UnknownChoice, panel
from keys.usage.ranges import RANGES, Range

FAILED = 10
"""Failed requests on a page. A phone shows about four at a time."""


@dashboard_page
@require_safe
def usage(request: HttpRequest, pk: int) -> HttpResponse:
    """Show charts of a key, its unknown methods, and its failed requests.

    The query selects charts by `range`, `by` and `of`, and a page by `failed`.
    """
    api_key = own_key(request, pk)
    chosen = _chosen(request)
    failures = failures_of(api_key)
    failed = Paginator(failures.latest, FAILED).get_page(request.GET.get("failed"))
    context = {
        "key": api_key,
        "panel": panel(chosen, timezone.now(), api_key),
        "quota": quota_of(api_key),
        "query": chosen.query(),
        "unknown": failures.unknown,
        "failed": failed,
    }
    return render(request, "dashboard/usage.html", context)


@dashboard_page
@require_safe
def export(request: HttpRequest, pk: int) -> HttpResponse:
    """Send the usage rows of a range as CSV. The query selects it by `range`."""
    api_key = own_key(request, pk)
    chosen = _chosen(request)
    text = usage_csv(api_key, RANGES[chosen.range], timezone.now())
    name = f"usage-{api_key.pk}-{chosen.range}.csv"
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _chosen(request: HttpRequest) -> Chosen:
    """Return the selected charts from the query. Raises: Http404 if it is malformed."""
    try:
        return Chosen.from_query(request.GET.dict())
    except UnknownChoice as error:
        raise Http404(str(error)) from error


MAX_ROWS = 100_000
"""Most rows exported, the latest first. That is about 8 MB."""

_COPY = """
    COPY (
        SELECT to_char(start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS start,
            span AS span_seconds, slug AS network, method, outcome, calls, credits,
            round(duration_us / 1000.0, 3) AS duration_ms, bytes_out
        FROM keys_usagebucket used JOIN networks_network ON network_id = networks_network.id
        WHERE api_key_id = %s AND span = %s AND start >= %s AND start < %s
        ORDER BY used.start DESC, network_id, method, outcome
        LIMIT %s
    ) TO STDOUT WITH (FORMAT csv, HEADER)"""


def usage_csv(api_key: ApiKey, chosen: Range, now: datetime) -> str:
    """Return a key's usage within a range as CSV, the latest rows first."""
    window = chosen.window(now)
    asked = (api_key.pk, int(chosen.span), window.start, window.end, MAX_ROWS)
    with connection.cursor() as cursor, cursor.copy(_COPY, asked) as copy:
        text = b"".join(copy).decode()
    # RFC 4180; there is no line end within a field.
    return text.replace("\n", "\r\n")
