"""The internal API key that pays for the wallet's reads from the node.

Staff see it among the other keys, and may disable it, limit it, and grant it traces.
Its secret is derived from SECRET_KEY, so that every process knows it and no table
stores it.
"""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from keys import format as key_format
from keys.models import ApiKey, KeyVersion, User
from keys.services import (
    add_secret,
    announce_key,
    create_key,
    get_or_create_customer,
)

OWNER_EMAIL = "wallet@internal.invalid"
"""The key's owner: a user who can't log in and gets no email (RFC 2606)."""

_PURPOSE = b"the wallet's internal API key"


def secret() -> str:
    """Return the key's secret."""
    return key_format.derive_key(settings.SECRET_KEY.encode(), _PURPOSE)


def find() -> ApiKey | None:
    """Return the key's row, None if it does not exist yet."""
    named = Q(versions__digest=key_format.digest(secret()))
    return ApiKey.objects.filter(named).first()


@transaction.atomic
def ensure() -> ApiKey:
    """Return the key's row; create it if it does not exist.

    A new SECRET_KEY adds another secret to the same key, so that staff's decisions on
    the key remain. A secret that staff have revoked stays revoked.
    """
    owner = get_or_create_customer(email=OWNER_EMAIL)
    # Processes start at the same time, and only the first one creates the key.
    User.objects.select_for_update().get(pk=owner.pk)
    api_key = ApiKey.objects.filter(owner=owner).first()
    if api_key is None:
        api_key = create_key(
            owner=owner,
            name="wallet",
            staff_note="Charged for what dapps read through the wallet.",
        )
    digest = key_format.digest(secret())
    if not KeyVersion.objects.filter(digest=digest).exists():
        add_secret(api_key=api_key, secret=secret())
        announce_key(api_key)
    return api_key
