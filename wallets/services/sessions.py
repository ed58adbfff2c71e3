"""Changes of sessions: by the dapp, by the user, by expiry."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from wallets import proposals, scopes
from wallets.changes import BY_WALLET, Cause, announce_dapp, record
from wallets.models import CREATE_SESSION, Account, Dapp, Event, Session
from wallets.offers import offer_to, without_unsignable
from wallets.proposals import Choice
from wallets.scopes import Scopes
from wallets.services.locks import lock_session
from wallets.services.requests import withdraw
from wallets.signature_requests import is_allowed

EXPIRED_AT_ONCE = 100
"""Expired sessions that one transaction ends."""

LOOKED_AT_ONCE = 1000
"""Sessions that one query reads in a scan of all sessions."""


class Stale(Exception):
    """Raised when the data on the user's page is no longer current."""


def write_session(
    session: Session,
    granted: Scopes,
    *,
    event: Event,
    cause: Cause,
    expires_at: datetime | None = None,
) -> None:
    """Replace the scopes of a locked session. Empty scopes end the session.

    The version grows, and the change is announced, only if something differs. Pending
    requests for signatures that the session no longer allows are withdrawn.
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
    """Remove scopes from a dapp's session. Nothing happens without a session.

    names: of the scopes, unknown names are ignored; None or empty removes all. If the
        session ends, the dapp's pending requests are withdrawn as well.
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
    """Replace a session's scopes by the user's choice. An empty choice ends the session.

    version: of the session that the user has seen.
    Raises: Stale when it has changed since; NothingChosen for a choice that is not on
        offer.
    """
    session = lock_session(dapp.pk)
    if session.version != version or not session.scopes:
        raise Stale("The session has changed since the page was shown.")
    own = [account.named for account in Account.objects.filter(user_id=dapp.user_id)]
    chosen = proposals.edited(session.scopes, offer_to(dapp.user_id), choice, own)
    edited = without_unsignable(dapp.user_id, chosen)
    if edited != session.scopes or list(edited) != list(session.scopes):
        event = Event.CHANGED if edited else Event.REVOKED
        expires_at = session.expires_at
        write_session(session, edited, event=event, cause=cause, expires_at=expires_at)
    return session


def withdraw_chains(kept: Collection[str]) -> None:
    """Remove scopes that the wallet no longer serves from all sessions.

    kept: the scopes that sessions may keep, see `wallets.offers.kept_scopes`.
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
            session, left, event=event, cause=BY_WALLET, expires_at=expires_at
        )


@transaction.atomic
def end_expired_sessions(now: datetime | None = None) -> int:
    """End expired sessions; return their number.

    Several processes may run it concurrently: each skips rows locked by others.
    """
    due = (
        Session.objects.select_for_update(of=["self"], skip_locked=True)
        .select_related("dapp")
        .filter(expires_at__lte=now or timezone.now())[:EXPIRED_AT_ONCE]
    )
    ended = list(due)
    for session in ended:
        write_session(session, {}, event=Event.SESSION_EXPIRED, cause=BY_WALLET)
    return len(ended)
