"""Dapps are disconnected, blocked and let in again; by their user, or by staff for all."""

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
    """End a dapp's session and make its tokens useless: it has to be paired again."""
    revoke_session(dapp_id=dapp.pk, cause=cause)
    live = DappToken.objects.live().filter(dapp=dapp)
    if live.update(revoked_at=timezone.now()):
        record(Event.DISCONNECTED, cause, dapp)
        announce_dapp(dapp)


@transaction.atomic
def disconnect_all(*, user: User, cause: Cause) -> None:
    """Disconnect all of a user's dapps, as when his password has changed.

    Codes that are out end as well, those that are being exchanged among them: whoever has
    one would be back with it.
    """
    # Not with this moment: whoever exchanges a code may have looked at the clock before.
    live = Pairing.objects.filter(user=user, expires_at__gt=timezone.now())
    live.update(expires_at=F("created_at"))
    for dapp in Dapp.objects.filter(user=user).order_by("pk"):
        disconnect_dapp(dapp=dapp, cause=cause)


@transaction.atomic
def block_dapp(*, dapp: Dapp, cause: Cause) -> None:
    """Disconnect a dapp and let it neither connect nor ask again."""
    disconnect_dapp(dapp=dapp, cause=cause)
    if Dapp.objects.filter(pk=dapp.pk, blocked_at=None).update(
        blocked_at=timezone.now()
    ):
        record(Event.BLOCKED, cause, dapp)
        announce_dapp(dapp)


@transaction.atomic
def reject_and_block(*, request_id: int, user: User, cause: Cause) -> None:
    """Tell a dapp no, for good.

    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending.
    """
    request = reject_request(request_id=request_id, user=user, cause=cause)
    block_dapp(dapp=request.dapp, cause=cause)


@transaction.atomic
def unblock_dapp(*, dapp: Dapp, cause: Cause) -> None:
    """Let a dapp be paired again."""
    if Dapp.objects.filter(pk=dapp.pk).exclude(blocked_at=None).update(blocked_at=None):
        record(Event.UNBLOCKED, cause, dapp)
        announce_dapp(dapp)


@transaction.atomic
def block_for_all(*, blocked: BlockedDapp, cause: Cause) -> None:
    """Disconnect what staff have blocked from every user.

    Pairing and connecting look at the table of what is blocked themselves.
    Raises: ValidationError, also for what is blocked already.
    """
    blocked.full_clean()
    try:
        with transaction.atomic():
            blocked.save()
    except IntegrityError as error:  # somebody else has blocked it since
        raise ValidationError("It is blocked already.") from error
    dapps = Dapp.objects.filter(kind=blocked.kind, ident=blocked.ident)
    for dapp in dapps.order_by("pk"):
        disconnect_dapp(dapp=dapp, cause=cause)
