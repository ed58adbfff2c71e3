"""The admin's first page: open tasks of staff, before the list of models.

Each section is a short table. Its rows link to the pages on which staff do the tasks. A
user gets the sections that their permissions allow. The queries of a section have a
time limit, so that the page is fast whatever the tables contain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from keys import staff_facts
from keys.audit_sentences import key_label, shown
from nodeapi.status.troubles import running_deletions, troubles

SECTION_MILLISECONDS = 60
"""Time limit of each query of a section."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell. address: of a link, or "". css: a class, or ""."""

    text: str
    address: str = ""
    css: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the first page.

    nothing: shown if there are no rows. more: label and URL of the whole list.
    is_late: whether the time limit was reached, so that the rows are unknown.
    """

    name: str
    title: str
    headers: list[str]
    nothing: str
    rows: list[list[Cell]] = field(default_factory=list)
    more: tuple[str, str] | None = None
    is_late: bool = False
    is_urgent: bool = False


Rows = list[list[Cell]]


def sections(request: HttpRequest) -> list[Section]:
    """Return the sections that the user may see."""
    return list(_sections(request))


def _sections(request: HttpRequest) -> Iterator[Section]:
    may = request.user.has_perm
    if may("keys.view_accessrequest"):
        yield _requests()
    if may("networks.view_network"):
        yield _filled(
            "troubles",
            "Networks and upstreams",
            ["Network", "Problem", "Detail"],
            "All followed networks are up to date, and their upstreams respond.",
            _troubles,
            more=("All networks", reverse("admin:networks_network_changelist")),
            is_urgent=True,
        )
    if may("keys.view_apikey"):
        yield _filled(
            "limits",
            "Keys near their daily quotas",
            ["Key", "Credits today", "Share of the quota"],
            "No key has spent 80 % of its daily quota.",
            _near_limits,
            more=("All keys", reverse("admin:keys_apikey_changelist")),
        )
        yield _filled(
            "busiest",
            "Busiest keys today",
            ["Key", "Calls", "Failed", "Credits"],
            "No key was used today.",
            _busiest,
        )
    if may("keys.view_usagebucket"):
        usage = reverse("admin:keys_usagebucket_changelist")
        yield _filled(
            "errors",
            "Errors of the last 24 hours",
            ["Method", "Network", "Outcome", "Calls", "Last (UTC)"],
            "No server errors or timeouts.",
            _failures,
            more=("All usage", usage),
            is_urgent=True,
        )


def _filled(
    name: str,
    title: str,
    headers: list[str],
    nothing: str,
    read: Callable[[], Rows],
    **options: Any,
) -> Section:
    """Return a section with its rows, or without them if reading takes too long."""
    rows = staff_facts.within(SECTION_MILLISECONDS, read)
    if rows is None:
        return Section(name, title, headers, nothing, [], is_late=True, **options)
    return Section(name, title, headers, nothing, rows, **options)


def _requests() -> Section:
    queue = staff_facts.within(SECTION_MILLISECONDS, staff_facts.open_requests)
    changelist = reverse("admin:keys_accessrequest_changelist")
    count = queue.count if queue else 0
    number = f"{count:,}+" if count >= staff_facts.COUNTED else f"{count:,}"
    return Section(
        "requests",
        f"Pending requests for tracing ({number})"
        if count
        else "Pending requests for tracing",
        ["Key", "Network", "Tracers", "Reason", "Since"],
        "No pending requests.",
        [
            [
                Cell(
                    key_label(asked.api_key),
                    reverse("admin:keys_accessrequest_change", args=[asked.pk]),
                ),
                Cell(asked.network.slug),
                Cell(", ".join(asked.tracers) or "all"),
                Cell(shown(asked.reason), css="long"),
                Cell(f"{asked.requested_at:%Y-%m-%d}"),
            ]
            for asked in (queue.oldest if queue else [])
        ],
        more=("All pending requests", f"{changelist}?status__exact=pending"),
        is_late=queue is None,
    )


def _troubles() -> Rows:
    rows = [
        [
            Cell(
                one.network.slug,
                reverse("admin:networks_network_status", args=[one.network.pk]),
            ),
            Cell(one.what, css="long"),
            Cell(one.detail, css="long"),
        ]
        for one in troubles(timezone.now())[: staff_facts.SHOWN]
    ]
    return rows + [
        [
            Cell(
                one.deletion.slug,
                reverse(
                    "admin:networks_networkdeletion_change", args=[one.deletion.pk]
                ),
            ),
            Cell("Being deleted"),
            Cell(f"{one.percent} %"),
        ]
        for one in running_deletions()[: staff_facts.SHOWN]
    ]


def _near_limits() -> Rows:
    return [
        [
            _key(one.key),
            _number(one.credits),
            Cell(
                f"{one.percent} % of {one.quota:,}",
                css="number warned" if one.percent >= 100 else "number",
            ),
        ]
        for one in staff_facts.keys_near_limits()
    ]


def _busiest() -> Rows:
    return [
        [
            _key(use.api_key),
            _number(use.calls),
            _number(use.failed),
            _number(use.credits),
        ]
        for use in staff_facts.busiest_keys()
    ]


def _failures() -> Rows:
    usage = reverse("admin:keys_usagebucket_changelist")
    return [
        [
            Cell(
                one.method,
                f"{usage}?outcome__exact={one.outcome.value}"
                f"&network__id__exact={one.network.pk}",
            ),
            Cell(one.network.slug),
            Cell(str(one.outcome.label)),
            _number(one.calls),
            Cell(f"{one.last_at:%Y-%m-%d %H}:00"),
        ]
        for one in staff_facts.recent_failures(timezone.now())
    ]


def _key(key: Any) -> Cell:
    return Cell(key_label(key), reverse("admin:keys_apikey_change", args=[key.pk]))


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", css="number")
