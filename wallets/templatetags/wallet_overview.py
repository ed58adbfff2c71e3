"""Counts and charts of all wallets, for the admin's page on the wallet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.db.models import Count, DateTimeField, F, Func, QuerySet, Value
from django.utils import timezone

from keys.charts.plots import Plot, Series, bars
from keys.charts.windows import Window
from wallets.models import (
    Account,
    Activity,
    BlockedDapp,
    ConsentRequest,
    Dapp,
    DappToken,
    Event,
    LiveSocket,
    Session,
)

register = template.Library()

DAYS = 30

_REQUESTS = {
    "Granted": ([Event.GRANTED], "outcome-ok"),
    "Rejected": ([Event.REJECTED], "outcome-client-error"),
    "Expired": ([Event.EXPIRED], "outcome-denied"),
    "Withdrawn": ([Event.WITHDRAWN], "series-rest"),
}
"""Outcomes of requests: the events of each bar, and its CSS class."""

_CONNECTIONS = {
    "Connected": ([Event.PAIRED], "series-1"),
    "Changed": ([Event.CHANGED], "series-2"),
    "Ended": ([Event.REVOKED, Event.SESSION_EXPIRED], "series-4"),
    "Disconnected or blocked": ([Event.DISCONNECTED, Event.BLOCKED], "series-5"),
}


MAX_COUNTED = 10_000
"""Rows are counted up to this number, because counting all takes ever longer."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A count of existing rows. model: name of the admin's list that shows them."""

    name: str
    count: int
    model: str

    @property
    def words(self) -> str:
        """The count as text: `1,234`, `over 10,000`."""
        if self.count > MAX_COUNTED:
            return f"over {MAX_COUNTED:,}"
        return f"{self.count:,}"


def tiles() -> list[Tile]:
    """Return the tiles of the admin's overview: numbers of users, dapps, sessions, …."""
    users = Account.objects.order_by("user").values("user").distinct()
    return [
        Tile("Users with accounts", _count(users), "account"),
        Tile("Dapps", _count(_ids(Dapp.objects.all())), "dapp"),
        Tile("Valid connection tokens", _count(_ids(DappToken.objects.live())), "dapp"),
        Tile(
            "Sessions",
            _count(_ids(Session.objects.exclude(stored_scopes=[]))),
            "session",
        ),
        Tile("Open sockets", _count(_ids(LiveSocket.objects.open())), "livesocket"),
        Tile(
            "Pending requests",
            _count(_ids(ConsentRequest.objects.pending())),
            "consentrequest",
        ),
        Tile(
            "Blocked for all users",
            _count(_ids(BlockedDapp.objects.all())),
            "blockeddapp",
        ),
    ]


def _ids(rows: QuerySet[Any]) -> QuerySet[Any, Any]:
    return rows.order_by().values("pk")


def _count(rows: QuerySet[Any, Any]) -> int:
    """Return the number of rows, at most MAX_COUNTED + 1."""
    return rows[: MAX_COUNTED + 1].count()


def plots(now: datetime) -> list[Plot]:
    """Return the charts of the last DAYS days (UTC)."""
    window = Window.until(now, timedelta(days=1), DAYS)
    # This arithmetic takes half as long as `date_trunc`, which uses a calendar.
    day = Func(
        *(Value(window.step), F("at"), Value(window.start)),
        function="date_bin",
        output_field=DateTimeField(),
    )
    rows = (
        Activity.objects.filter(at__gte=window.start)
        .annotate(day=day)
        .values_list("day", "event")
        .annotate(times=Count("*"))  # the index contains all columns of the query
    )
    happened: Counter[tuple[datetime, str]] = Counter()
    for day, event, times in rows:
        happened[day, event] += times
    return [
        bars("requests", "Requests", window, _series(window, happened, _REQUESTS)),
        bars(
            "connections",
            "Dapps and sessions",
            window,
            _series(window, happened, _CONNECTIONS),
        ),
    ]


def _series(
    window: Window,
    happened: Mapping[tuple[datetime, str], int],
    kinds: Mapping[str, tuple[list[Event], str]],
) -> list[Series]:
    days = [window.moment(number) for number in range(window.count)]
    return [
        Series(label, css, [sum(happened[day, e] for e in events) for day in days])
        for label, (events, css) in kinds.items()
    ]


@register.inclusion_tag("wallets/overview.html")
def wallet_overview() -> dict[str, Any]:
    """Show counts and charts of all wallets."""
    return {"tiles": tiles(), "plots": plots(timezone.now())}
