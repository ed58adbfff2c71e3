"""Totals of the keys' usage."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError
from django.utils import timezone
from django.utils.http import urlencode
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.filters import Filter, moment, one_of, read_filters, whole, words
from keys.api.problems import TooCostly
from keys.api.sums import (
    GROUPS,
    INTERVALS,
    RESOLUTIONS,
    Question,
    read_cursor,
    read_page,
)
from keys.api.views import ManagementView, Need
from keys.models import Outcome, Scope, Span
from keys.site import base_url
from keys.usage.tiers import KEEP, is_kept, span_of

MAX_PAGE = 1000
USUAL_PAGE = 100

USUAL_RANGE = timedelta(days=1)
MAX_RANGE = timedelta(days=400)
"""Longest range of one query."""


class UsageDocument(serializers.Serializer[Any]):
    """A total of usage. Columns that it was not grouped by are absent."""

    start = serializers.DateTimeField(required=False)
    customer = serializers.IntegerField(required=False)
    key = serializers.IntegerField(required=False)
    network = serializers.CharField(required=False)
    method = serializers.CharField(required=False)
    outcome = serializers.ChoiceField(choices=Outcome.choices, required=False)
    calls = serializers.IntegerField()
    credits = serializers.IntegerField()
    duration_us = serializers.IntegerField(
        help_text="Total duration of the calls in microseconds."
    )
    bytes_out = serializers.IntegerField(help_text="Total size of the responses.")
    latency_p50_us = serializers.IntegerField(allow_null=True)
    latency_p95_us = serializers.IntegerField(allow_null=True)
    latency_p99_us = serializers.IntegerField(allow_null=True)


class UsagePageDocument(serializers.Serializer[Any]):
    """A page of totals. `next` is the URL of the next page."""

    next = serializers.URLField(allow_null=True)
    resolution = serializers.ChoiceField(list(RESOLUTIONS))
    results = UsageDocument(many=True)


class CsvRenderer(BaseRenderer):
    """Renders a page of totals as CSV.

    The `Link` header contains the next page's URL.
    """

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Any = None,
    ) -> bytes:
        """Return the CSV text, with a header line of column names."""
        if "results" not in data:  # a refusal
            refusal: bytes = JSONRenderer().render(data)
            return refusal
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(data["columns"])
        writer.writerows(row.values() for row in data["results"])
        return text.getvalue().encode()


def _groups(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not set(names) <= set(GROUPS) or len(set(names)) < len(names):
        raise ValueError(
            f"Must be one or more of {', '.join(GROUPS)}, separated by commas."
        )
    return names


class UsageView(ManagementView):
    """Returns totals of usage."""

    needs = {"GET": Need(Scope.USAGE_READ, "keys.view_usagebucket")}
    renderer_classes = [JSONRenderer, CsvRenderer]
    pagination_class = None
    filters = {
        "from": moment("since", "Start. By default, one day before `to`."),
        "to": moment("until", "End, exclusive. By default, now."),
        "group_by": Filter(
            "groups",
            _groups,
            str,
            f"One or more of {', '.join(GROUPS)}, separated by commas.",
        ),
        "interval": one_of(
            "interval",
            list(INTERVALS),
            "Returns one total for each interval of this length, in UTC.",
        ),
        "resolution": one_of(
            "resolution",
            list(RESOLUTIONS),
            "Time span of the rows that are summed; see above.",
        ),
        "customer": whole("customer", "Id of a customer."),
        "key": whole("key", "Id of a key."),
        "network": words("network", "Slug of a network."),
        "method": words("method", "Name of a method."),
        "outcome": one_of("outcome", list(Outcome.values), "Outcome of the calls."),
        "page_size": whole(
            "size", f"Rows of a page: {USUAL_PAGE} by default, at most {MAX_PAGE}."
        ),
        "cursor": words(
            "cursor", "Where the page begins. The URL in `next` contains it."
        ),
        "format": one_of(
            "format", ["json", "csv"], "Format of the response, like `Accept`."
        ),
    }

    @extend_schema(
        responses={(200, "application/json"): UsagePageDocument, (200, "text/csv"): str}
    )
    def get(self, request: Request) -> Response:
        """Return totals of usage, as JSON or CSV.

        Without `group_by` and `interval`, there is one total. Usage is written every 5
        seconds. It is stored by minute for 48 hours, by hour for 90 days, and by day.
        The `resolution` selects which of these rows are added up. A call counts at the
        beginning of its minute, hour or day. The default is the longest resolution at
        whose boundaries `from`, `to` and all intervals lie. If there is none, or if its
        rows since `from` were deleted, the default is the shortest resolution that is
        stored since `from`.
        """
        wanted = read_filters(request, self.filters)
        size = min(max(wanted.pop("size", USUAL_PAGE), 1), MAX_PAGE)
        wanted.pop("format", None)
        question = _question(wanted)
        try:
            rows, cursor = read_page(question, size)
        except OperationalError as error:
            raise TooCostly from error
        following = _address(request, question, cursor) if cursor else None
        resolution = question.span.label.lower()
        answer = Response(
            {"next": following, "resolution": resolution, "results": rows}
        )
        if request.accepted_renderer.format == "csv":
            columns = [*question.names, *_COLUMNS]
            answer.data = {"columns": columns, "results": rows}
        if following:
            answer["Link"] = f'<{following}>; rel="next"'
        return answer


_COLUMNS = list(UsageDocument().fields)[1 + len(GROUPS) :]


def _question(wanted: dict[str, Any]) -> Question:
    """Return the query that the parameters describe. Raises: ValidationError."""
    until = wanted.pop("until", None) or timezone.now()
    since = wanted.pop("since", None) or until - USUAL_RANGE
    if not since < until:
        raise ValidationError({"from": "Must be before `to`."})
    if until - since > MAX_RANGE:
        raise ValidationError(
            {"from": f"Must be at most {MAX_RANGE.days} days before `to`."}
        )
    groups = wanted.pop("groups", ())
    interval = wanted.pop("interval", "")
    cursor = wanted.pop("cursor", "")
    span = _span(since, until, interval, wanted.pop("resolution", ""))
    question = Question(since, until, span, wanted, groups, interval)
    if not cursor:
        return question
    try:
        return replace(question, after=read_cursor(cursor, question.names))
    except ValueError as error:
        raise ValidationError({"cursor": str(error)}) from error


def _span(since: datetime, until: datetime, interval: str, resolution: str) -> Span:
    """Return the span of the rows to add up.

    Raises: ValidationError if it is not stored.
    """
    now = timezone.now()
    longest = INTERVALS.get(interval, max(Span))
    if not resolution:
        return span_of(since, until, longest, now)
    span = RESOLUTIONS[resolution]
    if span > longest:
        raise ValidationError({"resolution": "Must not be longer than `interval`."})
    if not is_kept(span, since, now):
        first = (now - KEEP[span]).isoformat(timespec="seconds")
        raise ValidationError(
            {"resolution": f"Usage per {resolution} is only available since {first}."}
        )
    return span


def _address(request: Request, question: Question, cursor: str) -> str:
    """Return the URL of the page after a cursor, with the same query."""
    parameters = {
        **request.query_params.dict(),
        "from": question.since.isoformat(),
        "to": question.until.isoformat(),
        "resolution": question.span.label.lower(),
        "cursor": cursor,
    }
    return f"{base_url(request)}{request.path}?{urlencode(parameters)}"
