"""What nobody needs any more is deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from wallets import conf
from wallets.models import (
    UNDECIDED,
    Activity,
    ConsentRequest,
    DappToken,
    LiveSocket,
    Pairing,
    RequestState,
)
from wallets.services.requests import expire_request
from wallets.services.sending import close_abandoned

DEAD_FOR = timedelta(days=30)
"""For how long it can be looked up where a token was used that is good no more."""

USED_CODES = timedelta(days=1)
"""For how long it can be looked up who has shown a code."""

AT_ONCE = 5_000
"""Rows that one statement deletes: nobody waits long for it."""


def prune(now: datetime | None = None) -> dict[str, int]:
    """Delete what is old; return how many rows of each kind were.

    Requests that nobody has decided in time, as those of a process that was killed, are
    closed first. Any number of processes may do it at once.
    """
    moment = now or timezone.now()
    history = moment - conf.history()
    dead = moment - DEAD_FOR
    overdue = ConsentRequest.objects.filter(
        state=RequestState.PENDING, expires_at__lte=moment
    )
    for request_id in overdue.values_list("pk", flat=True)[:AT_ONCE]:
        expire_request(request_id=request_id)
    sending = ConsentRequest.objects.filter(state=RequestState.SENDING)
    for request_id in sending.values_list("pk", flat=True)[:AT_ONCE]:
        close_abandoned(request_id=request_id)
    decided = ConsentRequest.objects.exclude(state__in=UNDECIDED)
    waiting = ConsentRequest.objects.pending().values("socket")  # see `abandoned`
    return {
        "sockets": _delete(LiveSocket.objects.left().exclude(name__in=waiting)),
        "codes": _delete(Pairing.objects.filter(expires_at__lt=moment - USED_CODES)),
        "tokens": _delete(
            DappToken.objects.filter(Q(revoked_at__lt=dead) | Q(expires_at__lt=dead))
        ),
        "requests": _delete(decided.filter(created_at__lt=history)),
        "activities": _delete(Activity.objects.filter(at__lt=history)),
    }


def _delete(rows: QuerySet[Any]) -> int:
    """Delete rows, some at a time."""
    total = 0
    while True:
        some = list(rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
        rows.model.objects.filter(pk__in=some).delete()
        total += len(some)
        if len(some) < AT_ONCE:
            return total
