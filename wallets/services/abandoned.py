"""Requests of sockets that were lost when their process was killed."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet

from wallets.changes import Cause
from wallets.models import Actor, ConsentRequest, LiveSocket
from wallets.services.locks import lock_session
from wallets.services.requests import withdraw


def abandoned_requests() -> set[int]:
    """Return the ids of pending requests of sockets whose process seems to be dead.

    After an outage of the database no live process has renewed its row yet. So callers
    check again some seconds later before they act.
    """
    return set(_abandoned().values_list("pk", flat=True))


@transaction.atomic
def withdraw_abandoned(request_ids: Collection[int]) -> None:
    """Withdraw those of the requests that are still abandoned."""
    found = _abandoned().filter(pk__in=request_ids)
    for dapp_id in sorted(set(found.values_list("dapp_id", flat=True))):
        lock_session(dapp_id)
        withdraw(
            found.select_related("dapp").filter(dapp_id=dapp_id), Cause(Actor.DAPP)
        )


def _abandoned() -> QuerySet[ConsentRequest]:
    left = LiveSocket.objects.left().values("name")
    return ConsentRequest.objects.pending().filter(socket__in=left)
