"""Deletes expired and old rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from wallets.models import (
    UNDECIDED,
    Activity,
    ConsentRequest,
    DappToken,
    LiveSocket,
    Pairing,
    RequestState,
    ServingProcess,
)
from wallets.services.requests import expire_request
from wallets.services.sending import close_abandoned

DEAD_FOR = timedelta(days=30)
"""How long invalid tokens are kept, so that their last use can be looked up."""

USED_CODES = timedelta(days=1)
"""How long pairing codes are kept after their expiry, and the rows of processes after
their last renewal."""

AT_ONCE = 5_000
"""Rows that one statement deletes, so that no lock is held for long."""


def prune(now: datetime | None = None) -> dict[str, int]:
    """Delete old rows; return the number of deleted rows by kind.

    Pending requests past their expiry, as those of a killed process, are closed first.
    Several processes may run it concurrently.
    """
    moment = now or timezone.now()
    history = moment - timedelta(days=settings.WALLETS_HISTORY_DAYS)
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
        "processes": _delete(
            ServingProcess.objects.filter(seen_at__lt=Now() - USED_CODES)
        ),
    }


def _delete(rows: QuerySet[Any]) -> int:
    """Delete rows in batches; return their number."""
    total = 0
    while True:
        some = list(rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
        rows.model.objects.filter(pk__in=some).delete()
        total += len(some)
        if len(some) < AT_ONCE:
            return total
