"""Row locks that serialise the changes of a dapp."""

from __future__ import annotations

from wallets.models import Session


def lock_session(dapp_id: int) -> Session:
    """Return a dapp's session, locked until the end of the transaction.

    Its dapp is read later, after the lock was taken: the same query would return it as
    of before the wait.
    Raises: Session.DoesNotExist.
    """
    return Session.objects.select_for_update().get(dapp_id=dapp_id)
