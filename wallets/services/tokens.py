"""Connection tokens are exchanged for fresh ones, and end with a password."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.dispatch import receiver
from django.utils import timezone

from keys.models import User
from keys.signals import password_changed
from wallets.changes import Cause
from wallets.credentials import digest, new_token
from wallets.models import Actor, DappToken
from wallets.services.dapps import disconnect_all
from wallets.services.pairing import PairingRefused
from wallets.services.presence import is_good

RENEWED_AFTER = timedelta(hours=24)
"""A secret that is younger than that need not be another one."""


@transaction.atomic
def renew_token(*, secret: str, origin: str | None) -> str:
    """Return the secret that a token has from now on; the same while it is fresh.

    The old one stays good until the new one has been shown: an answer may get lost. The
    token itself stays what it is, and its open sockets stay open.
    origin: the request's Origin header, of which the same holds as for sockets.
    Raises: PairingRefused.
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
    renewed = new_token()
    token.digest, token.former_digest = digest(renewed), shown
    token.renewed_at = timezone.now()
    token.save(update_fields=["digest", "former_digest", "renewed_at"])
    return renewed


@receiver(password_changed)
def end_with_password(user: User, **_: Any) -> None:
    """Disconnect all of a user's dapps: somebody else may have let them in."""
    disconnect_all(user=user, cause=Cause(Actor.USER))
