"""Changes of sessions: by the dapp, by the user, by time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from wallets import proposals, scopes
from wallets.changes import THE_WALLET, Cause, announce_dapp, record
from wallets.models import CREATE_SESSION, Account, Dapp, Event, Session
from wallets.offers import as_far_as_keys_go, offer_to
from wallets.proposals import Choice
from wallets.scopes import Scopes
from wallets.services.locks import lock_session
from wallets.services.requests import withdraw
from wallets.signatures import is_allowed

EXPIRED_AT_ONCE = 100
"""Sessions that one transaction ends."""

LOOKED_AT_ONCE = 1000
"""Sessions that one query reads, where all are looked at."""


class Stale(Exception):
    """Raised when what a user has decided upon is no longer what there is."""


def write_session(
    session: Session,
    granted: Scopes,
    *,
    event: Event,
    cause: Cause,
    expires_at: datetime | None = None,
) -> None:
    """Give a locked session other scopes; none end it.

    The version counts only what has changed, and nothing is said of what has not.
    Signatures that wait for the user and that it allows no longer are withdrawn.
    """
    old = session.scopes
    stored = scopes.to_stored(granted)
    has_changed = (session.stored_scopes, session.expires_at) != (stored, expires_at)
    if has_changed:
        session.stored_scopes = stored
        session.expires_at = expires_at if granted else None
        session.version += 1
        session.changed_by = cause.socket
        session.changed_at = timezone.now()
        session.save()
        waiting = session.dapp.requests.pending().exclude(method=CREATE_SESSION)
        withdraw((one for one in waiting if not is_allowed(one, granted)), cause)
    details = scopes.difference(old, granted)
    if has_changed or event == Event.GRANTED:
        record(event, cause, session.dapp, details)
        announce_dapp(session.dapp)


@transaction.atomic
def revoke_session(
    *, dapp_id: int, cause: Cause, names: Collection[str] | None = None
) -> Session:
    """Take scopes away from a dapp; nothing happens where there are none.

    names: of the scopes, unknown ones are ignored; None or empty: all. With a session,
        what the dapp has asked for and not got yet is withdrawn as well.
    """
    session = lock_session(dapp_id)
    old = session.scopes
    left = scopes.without(old, names) if names else {}
    if left != old:
        event = Event.CHANGED if left else Event.REVOKED
        expires_at = session.expires_at
        write_session(session, left, event=event, cause=cause, expires_at=expires_at)
    if not names or (old and not left):
        withdraw(session.dapp.requests.pending(), cause)
    return session


@transaction.atomic
def edit_session(*, dapp: Dapp, choice: Choice, version: int, cause: Cause) -> Session:
    """Make of a session what its user has left ticked; it ends when that is nothing.

    version: of the session that he has looked at.
    Raises: Stale when it has changed since; NothingChosen for what is not on offer.
    """
    session = lock_session(dapp.pk)
    if session.version != version or not session.scopes:
        raise Stale("The session has changed meanwhile.")
    own = [account.named for account in Account.objects.filter(user_id=dapp.user_id)]
    chosen = proposals.edited(session.scopes, offer_to(dapp.user_id), choice, own)
    edited = as_far_as_keys_go(dapp.user_id, chosen)
    if edited != session.scopes or list(edited) != list(session.scopes):
        event = Event.CHANGED if edited else Event.REVOKED
        expires_at = session.expires_at
        write_session(session, edited, event=event, cause=cause, expires_at=expires_at)
    return session


def withdraw_chains(kept: Collection[str]) -> None:
    """Take out of all sessions the chains that the wallet serves no longer.

    kept: what they may go on holding, see `wallets.offers.kept_scopes`.
    """
    granted, last = Session.objects.exclude(stored_scopes=[]).order_by("id"), 0
    while rows := list(granted.filter(id__gt=last)[:LOOKED_AT_ONCE]):
        for row in rows:
            if row.scopes.keys() - set(kept):
                _keep_only(row.dapp_id, kept)
        last = rows[-1].pk


@transaction.atomic
def _keep_only(dapp_id: int, kept: Collection[str]) -> None:
    session = lock_session(dapp_id)
    old = session.scopes
    left = scopes.without(old, old.keys() - set(kept))
    if left != old:
        event = Event.CHANGED if left else Event.REVOKED
        expires_at = session.expires_at
        write_session(
            session, left, event=event, cause=THE_WALLET, expires_at=expires_at
        )


@transaction.atomic
def end_expired_sessions(now: datetime | None = None) -> int:
    """End sessions whose time is over; return how many.

    Any number of processes may do it at once: each takes what no other has taken.
    """
    due = (
        Session.objects.select_for_update(of=["self"], skip_locked=True)
        .select_related("dapp")
        .filter(expires_at__lte=now or timezone.now())[:EXPIRED_AT_ONCE]
    )
    ended = list(due)
    for session in ended:
        write_session(session, {}, event=Event.SESSION_EXPIRED, cause=THE_WALLET)
    return len(ended)
