"""Authentication by a token: `Authorization: Bearer mt_…`.

Session cookies are ignored, so that no web page can make a browser send an
authenticated request.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from keys import format as key_format
from keys.api.throttling import OF_INVALID, gate
from keys.models import ApiToken, User
from server.addresses import owner_of

REALM = 'Bearer realm="portcullis management"'

_NOTED_EACH = timedelta(minutes=1)
"""Shortest time between two updates of a token's last use, to limit writes."""


class TokenAuthentication(BaseAuthentication):
    """Accepts valid tokens of active staff users."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return owner and token, or None without an Authorization header.

        Raises: AuthenticationFailed for any invalid token, always with the same
            message;
            Throttled after too many invalid tokens.
        """
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, secret = header.partition(" ")
        found = _find(secret.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            place = owner_of(request.META.get("REMOTE_ADDR"))
            wait = gate.pass_through(("invalid", place), OF_INVALID)
            raise Throttled(wait) if wait else AuthenticationFailed("invalid token")
        _note_use(found)
        return found.owner, found

    def authenticate_header(self, request: Request) -> str:
        """Return the value of the WWW-Authenticate header of a 401 response."""
        return REALM


def _find(secret: str) -> ApiToken | None:
    if not key_format.is_well_formed(secret, key_format.TOKEN_PREFIX):
        return None
    live = ApiToken.objects.live().select_related("owner")
    digest = key_format.digest(secret)
    return live.filter(
        digest=digest, owner__is_active=True, owner__is_staff=True
    ).first()


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    unnoted = Q(last_used_at=None) | Q(last_used_at__lt=now - _NOTED_EACH)
    if token.last_used_at is None or token.last_used_at < now - _NOTED_EACH:
        ApiToken.objects.filter(unnoted, pk=token.pk).update(last_used_at=now)
