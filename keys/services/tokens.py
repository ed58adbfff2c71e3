"""Changes of the management API's tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from keys import format as key_format
from keys.models import ApiToken, User
from keys.services.events import SYSTEM, Actor, require_future


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token with its secret, which is not stored. repr() omits the secret."""

    token: ApiToken
    secret: str = field(repr=False)


@transaction.atomic
def issue_token(
    *,
    owner: User,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    actor: Actor = SYSTEM,
) -> IssuedToken:
    """Create a token for a program of a staff user.

    Only the result contains its secret.

    Raises: ValidationError for an invalid value, and if the owner is not staff.
    """
    if not (owner.is_staff and owner.is_active):
        raise ValidationError(
            {"owner": "Only active members of staff can have tokens."}
        )
    require_future(expires_at)
    secret = key_format.make_key(key_format.TOKEN_PREFIX)
    token = ApiToken(
        owner=owner,
        name=name,
        scopes=sorted(set(scopes)),
        digest=key_format.digest(secret),
        hint=key_format.hint(secret),
        expires_at=expires_at,
        created_by=actor.user,
    )
    token.full_clean()
    token.save()
    return IssuedToken(token, secret)


@transaction.atomic
def revoke_token(*, token: ApiToken) -> ApiToken:
    """Revoke a token permanently. No effect if it is revoked already."""
    token = ApiToken.objects.select_for_update(of=["self"]).get(pk=token.pk)
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at"])
    return token
