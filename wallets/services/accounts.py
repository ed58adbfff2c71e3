"""Changes of a user's accounts, which are applied to their sessions at once."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from keys.models import User
from wallets import caip, scopes
from wallets.changes import Cause, announce_user, record
from wallets.models import Account, Event, Session
from wallets.offers import without_unsignable
from wallets.services.sessions import write_session

MAX_ACCOUNTS = 100
"""Accounts of one user; a session lists each of them on each chain."""


@transaction.atomic
def add_account(
    *,
    user: User,
    address: str,
    cause: Cause,
    label: str = "",
    namespace: str = "eip155",
) -> Account:
    """Add an account to a user's wallet. Dapps see it once the user allows that.

    Raises: ValidationError for an invalid address or label, and for an account that the
        wallet has already.
    """
    try:
        named = caip.parse_address(namespace, address)
    except ValueError as error:
        raise ValidationError({"address": f"This is {error}."}) from error
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    own = Account.objects.filter(user=user)
    if own.count() >= MAX_ACCOUNTS:
        raise ValidationError(f"A wallet holds at most {MAX_ACCOUNTS} accounts.")
    last: int | None = own.aggregate(Max("position"))["position__max"]
    account = Account(
        user=user,
        namespace=named.namespace,
        address=named.address,
        label=label,
        position=0 if last is None else last + 1,
    )
    account.full_clean()
    account.save()
    details = {"address": account.address}
    record(Event.ACCOUNT_ADDED, cause, user, details)
    announce_user(user.pk)
    return account


@transaction.atomic
def rename_account(*, account: Account, label: str) -> None:
    """Rename an account. Nothing happens if it was removed. Dapps do not see the name.

    Raises: ValidationError if the label is invalid.
    """
    account.label = label
    account.full_clean()
    Account.objects.filter(pk=account.pk).update(label=label)
    announce_user(account.user_id)


@transaction.atomic
def move_account(*, account: Account, position: int, cause: Cause) -> None:
    """Move an account to a position among the others, in every session as well.

    position: number of accounts before it; 0 makes it the primary one, a number beyond
        the last position is the last.
    """
    own = list(Account.objects.select_for_update().filter(user_id=account.user_id))
    order = [other for other in own if other.pk != account.pk]
    order[position:position] = [other for other in own if other.pk == account.pk]
    for place, other in enumerate(order):
        if other.position != place:
            other.position = place
            other.save(update_fields=["position"])
    follow_accounts(account.user_id, cause)
    announce_user(account.user_id)


@transaction.atomic
def remove_account(*, account: Account, cause: Cause) -> None:
    """Remove an account from the wallet and from every session.

    Does nothing if it was removed already.
    """
    user, address = account.user, account.address
    deleted, _ = account.delete()
    if not deleted:
        return
    record(Event.ACCOUNT_REMOVED, cause, user, {"address": address})
    follow_accounts(user.pk, cause)
    announce_user(user.pk)


def follow_accounts(user_id: int, cause: Cause) -> None:
    """Update a user's sessions after their accounts or keys have changed."""
    sessions = (
        Session.objects.select_for_update(of=["self"])
        .select_related("dapp")
        .filter(dapp__user_id=user_id)
        .order_by("pk")
    )
    for session in list(sessions):
        old = session.scopes
        shown = set(scopes.requested_addresses(old))
        # Read after the lock was taken: an earlier grant may contain any of them.
        own = [account.named for account in Account.objects.filter(user_id=user_id)]
        left = [address for address in own if address in shown]
        new = without_unsignable(user_id, scopes.with_addresses(old, left))
        if new != old:
            new = scopes.drop_unusable(new)
            event = Event.CHANGED if new else Event.REVOKED
            expires_at = session.expires_at
            write_session(session, new, event=event, cause=cause, expires_at=expires_at)
