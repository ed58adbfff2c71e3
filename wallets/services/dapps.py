"""Disconnects, blocks and unblocks dapps, for one user or for all."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from keys.models import User
from wallets.changes import Cause, announce_dapp, record
from wallets.models import BlockedDapp, Dapp, DappToken, Event, Pairing
from wallets.services.requests import reject_request
from wallets.services.sessions import revoke_session


@transaction.atomic
def disconnect_dapp(*, dapp: Dapp, cause: Cause) -> None:
    """End a dapp's session and revoke its tokens, so that it has to be paired again."""
    revoke_session(dapp_id=dapp.pk, cause=cause)
    live = DappToken.objects.live().filter(dapp=dapp)
    if live.update(revoked_at=timezone.now()):
        record(Event.DISCONNECTED, cause, dapp)
        announce_dapp(dapp)


@transaction.atomic
def disconnect_all(*, user: User, cause: Cause) -> None:
    """Disconnect all of a user's dapps, as when their password has changed.

    Unused pairing codes are invalidated too, also those that are being exchanged:
    otherwise a dapp with a code could connect again.
    """
    # Not the present time: an exchange in progress may have read the clock before.
    live = Pairing.objects.filter(user=user, expires_at__gt=timezone.now())
    live.update(expires_at=F("created_at"))
    for dapp in Dapp.objects.filter(user=user).order_by("pk"):
        disconnect_dapp(dapp=dapp, cause=cause)


@transaction.atomic
def block_dapp(*, dapp: Dapp, cause: Cause) -> None:
    """Disconnect a dapp and prevent it from connecting and asking again."""
    disconnect_dapp(dapp=dapp, cause=cause)
    if Dapp.objects.filter(pk=dapp.pk, blocked_at=None).update(
        blocked_at=timezone.now()
    ):
        record(Event.BLOCKED, cause, dapp)
        announce_dapp(dapp)


@transaction.atomic
def reject_and_block(*, request_id: int, user: User, cause: Cause) -> None:
    """Reject a dapp's request and block the dapp.

    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending.
    """
    request = reject_request(request_id=request_id, user=user, cause=cause)
    block_dapp(dapp=request.dapp, cause=cause)


@transaction.atomic
def unblock_dapp(*, dapp: Dapp, cause: Cause) -> None:
    """Allow a blocked dapp to be paired again."""
    if Dapp.objects.filter(pk=dapp.pk).exclude(blocked_at=None).update(blocked_at=None):
        record(Event.UNBLOCKED, cause, dapp)
        announce_dapp(dapp)


@transaction.atomic
def block_for_all(*, blocked: BlockedDapp, cause: Cause) -> None:
    """Block an identity for all users, and disconnect it from each.

    Pairing and connecting check the table of blocked identities themselves.
    Raises: ValidationError, also for an identity that is blocked already.
    """
    blocked.full_clean()
    try:
        with transaction.atomic():
            blocked.save()
    except IntegrityError as error:  # blocked by a concurrent transaction
        raise ValidationError("The dapp is already blocked.") from error
    dapps = Dapp.objects.filter(kind=blocked.kind, ident=blocked.ident)
    for dapp in dapps.order_by("pk"):
        disconnect_dapp(dapp=dapp, cause=cause)
