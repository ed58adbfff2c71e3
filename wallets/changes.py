"""Announcements of changes to serving processes, and the users' activity log.

An announcement is an entry of the user's stream in the outbox, in the transaction of the
change: it exists exactly if the change commits. It names what to read again.

Streams of different users and of blocks have no common order. Before events of a block
are sent, `sockets.feed` therefore checks that the sessions it knows are current.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keys.models import User
from outbox.append import append
from outbox.streams import wallet
from wallets.models import Activity, Actor, Dapp, Event

DAPP_PREFIX = "dapp:"
"""Prefix of a dapp's id in a subject. The dapp's session, requests or tokens have changed, and
so have the pages of its user."""

USER = "user"
"""Subject of a change that only concerns the user's pages."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a change.

    socket: name of the dapp's socket whose call made the change, "" for none.
    """

    actor: Actor
    remote_address: str | None = None
    socket: str = ""


BY_WALLET = Cause(Actor.SYSTEM)
"""The cause of changes that happen without a person or a dapp, such as expiry."""


def announce_dapp(dapp: Dapp) -> None:
    """Announce to serving processes, at the commit, that a dapp has changed."""
    append(wallet(dapp.user_id), f"{DAPP_PREFIX}{dapp.pk}")


def announce_user(user_id: int) -> None:
    """Announce to serving processes, at the commit, that a user's pages have changed."""
    append(wallet(user_id), USER)


def record(
    event: Event,
    cause: Cause,
    subject: Dapp | User,
    details: Mapping[str, object] | None = None,
) -> None:
    """Add a line to a user's activity log.

    subject: a dapp of the user, or the user if no dapp is concerned.
    """
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
