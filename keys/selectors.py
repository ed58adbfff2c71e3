"""Reads of keys for people; requests are let in by `keys.grants`."""

from __future__ import annotations

from django.db.models import Q

from keys import format as key_format
from keys.models import KeyVersion


def get_key_version(text: str) -> KeyVersion:
    """Return the version that a full key or a hint names.

    A hint may be typed with three dots.
    Raises: KeyVersion.DoesNotExist, KeyVersion.MultipleObjectsReturned for a hint that
        several versions share.
    """
    text = text.strip()
    named = Q(digest=key_format.digest(text)) | Q(hint=text.replace("...", "…"))
    return KeyVersion.objects.select_related("api_key__owner").get(named)
