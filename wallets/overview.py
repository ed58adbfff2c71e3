"""The wallet as staff look at it: what there is now, and what has happened lately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Count
from django.db.models.functions import TruncDay

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

DAYS = 30

_REQUESTS = {
    "Granted": ([Event.GRANTED], "outcome-ok"),
    "Rejected": ([Event.REJECTED], "outcome-client-error"),
    "Expired": ([Event.EXPIRED], "outcome-denied"),
    "Withdrawn": ([Event.WITHDRAWN], "series-rest"),
}
"""How requests ended: the events of each bar, and its class."""

_CONNECTIONS = {
    "Paired": ([Event.PAIRED], "series-1"),
    "Changed": ([Event.CHANGED], "series-2"),
    "Ended": ([Event.REVOKED, Event.SESSION_EXPIRED], "series-4"),
    "Disconnected or blocked": ([Event.DISCONNECTED, Event.BLOCKED], "series-5"),
}


@dataclass(frozen=True, slots=True)
class Tile:
    """A count of what there is now. model: of the list in the admin that shows it."""

    name: str
    count: int
    model: str


def tiles() -> list[Tile]:
    """Return what there is now."""
    connected = LiveSocket.objects.open()
    users = Account.objects.values("user").distinct()
    return [
        Tile("Users with accounts", users.count(), "account"),
        Tile("Dapps", Dapp.objects.count(), "dapp"),
        Tile("Live tokens", DappToken.objects.live().count(), "dapp"),
        Tile("Sessions", Session.objects.exclude(stored_scopes=[]).count(), "session"),
        Tile("Open sockets", connected.count(), "livesocket"),
        Tile(
            "Waiting requests",
            ConsentRequest.objects.pending().count(),
            "consentrequest",
        ),
        Tile("Blocked for all", BlockedDapp.objects.count(), "blockeddapp"),
    ]


def plots(now: datetime) -> list[Plot]:
    """Return what has happened in the last days, of UTC."""
    window = Window.until(now, timedelta(days=1), DAYS)
    rows = (
        Activity.objects.filter(at__gte=window.start)
        .annotate(day=TruncDay("at", tzinfo=UTC))
        .values_list("day", "event")
        .annotate(times=Count("*"))  # the index has all that is asked for
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
