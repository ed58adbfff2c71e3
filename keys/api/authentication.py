"""Who asks: `Authorization: Bearer mt_…`, and nothing else.

Cookies count for nothing here, so that no page can have a browser do anything.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from keys import format as key_format
from keys.api.throttling import OF_STRANGER, gate
from keys.models import ApiToken, User
from keys.places import place_of

REALM = 'Bearer realm="portcullis management"'

_NOTED_EACH = timedelta(minutes=1)
"""How often a use is written down; each time would be a write for each request."""


class TokenAuthentication(BaseAuthentication):
    """Lets live tokens of active members of staff in."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return owner and token; None without an Authorization header.

        Raises: AuthenticationFailed, in the same words for whatever is wrong;
            Throttled for who tries too many.
        """
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, secret = header.partition(" ")
        found = _find(secret.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            place = place_of(request.META.get("REMOTE_ADDR"))
            wait = gate.pass_through(("stranger", place), OF_STRANGER)
            raise Throttled(wait) if wait else AuthenticationFailed("invalid token")
        _note_use(found)
        return found.owner, found

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
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
