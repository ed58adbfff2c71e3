"""What a change begins with, so that no two of the same dapp overlap."""

from __future__ import annotations

from wallets.models import Session


def lock_session(dapp_id: int) -> Session:
    """Return a dapp's session, which nobody else changes until the commit.

    Its dapp is read later, behind the lock: in the same query it would be as it was
    before the wait.
    Raises: Session.DoesNotExist.
    """
    return Session.objects.select_for_update().get(dapp_id=dapp_id)
