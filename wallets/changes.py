"""The announcements of what changes, and the lines in the users' logs.

An announcement is a PostgreSQL NOTIFY within the transaction of the change, not a
message through Redis: it goes out exactly if the change commits, and a listening process
hears all announcements, those of new heads included, in the order of the commits. So
a head that was committed after a revocation is never handled before it. It says where to
look and nothing else; what was missed while not listening is looked at again, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection

from keys.models import User
from wallets.models import Activity, Actor, Dapp, Event

DAPP_CHANNEL = "portcullis_wallet_dapp"
"""A dapp's session, requests or tokens have changed; the payload is the dapp's id."""

USER_CHANNEL = "portcullis_wallet_user"
"""Something on a user's pages has changed; the payload is the user's id."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Who changes something, and from where.

    socket: names the dapp's socket whose call it is, "" for none.
    """

    actor: Actor
    remote_address: str | None = None
    socket: str = ""


THE_WALLET = Cause(Actor.SYSTEM)
"""Where time did it, and nobody."""


def announce_dapp(dapp: Dapp) -> None:
    """Tell the serving processes, at the commit, that a dapp has changed."""
    _notify(DAPP_CHANNEL, dapp.pk)
    announce_user(dapp.user_id)


def announce_user(user_id: int) -> None:
    """Tell the serving processes, at the commit, that a user's pages have changed."""
    _notify(USER_CHANNEL, user_id)


def record(
    event: Event,
    cause: Cause,
    subject: Dapp | User,
    details: Mapping[str, object] | None = None,
) -> None:
    """Write a line in a user's log, about one of his dapps or about himself."""
    dapp = subject if isinstance(subject, Dapp) else None
    Activity.objects.create(
        user_id=subject.user_id if isinstance(subject, Dapp) else subject.pk,
        dapp=dapp,
        dapp_name="" if dapp is None else dapp.name,
        event=event,
        actor=cause.actor,
        remote_address=cause.remote_address,
        details=dict(details or {}),
    )


def _notify(channel: str, payload: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [channel, str(payload)])
