"""Renewal of connection tokens, and their end with a new password."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from keys.models import User
from wallets.changes import Cause
from wallets.credentials import digest, successor
from wallets.models import Actor, DappToken
from wallets.services.dapps import disconnect_all
from wallets.services.pairing import PairingRefused
from wallets.services.presence import is_good

RENEWED_AFTER = timedelta(hours=24)
"""Age at which a token gets a new secret."""


@transaction.atomic
def renew_token(*, secret: str, origin: str | None) -> str:
    """Return a new secret for a token, or the present one if it is recent.

    The old secret stays valid until the new one is used, because the response may be
    lost. Until then it always gives the same new secret, because two pages may send it
    at once, and both have to keep a valid one. Open sockets of the token stay open.
    origin: the request's Origin header, which is checked like that of a socket.
    Raises: PairingRefused if the token is invalid.
    """
    shown = digest(secret)
    tokens = DappToken.objects.live().select_related("dapp__user")
    mine = tokens.filter(Q(digest=shown) | Q(former_digest=shown))
    token = mine.select_for_update(of=["self"], no_key=True).first()
    if token is None or not is_good(token, origin):
        raise PairingRefused
    is_current = token.digest == shown
    if is_current and timezone.now() - token.renewed_at < RENEWED_AFTER:
        return secret
    renewed = successor(secret)
    if token.digest == digest(renewed):
        return renewed
    token.digest, token.former_digest = digest(renewed), shown
    token.renewed_at = timezone.now()
    token.save(update_fields=["digest", "former_digest", "renewed_at"])
    return renewed


def end_with_password(user: User, **_: Any) -> None:
    """Disconnect all dapps of a user with a new password.

    A person who knew the old password may have paired them.
    """
    disconnect_all(user=user, cause=Cause(Actor.USER))
