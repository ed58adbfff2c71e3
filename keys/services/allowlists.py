"""Changes of allowlists."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import transaction

from keys.allowlists import MAX_ENTRIES
from keys.models import AllowlistEntry, AllowlistKind, ApiKey, EventType
from keys.services.events import SYSTEM, Actor, lock, record


@transaction.atomic
def set_allowlist(
    *,
    api_key: ApiKey,
    kind: str,
    values: Iterable[str],
    actor: Actor = SYSTEM,
) -> list[AllowlistEntry]:
    """Replace the entries of one kind of allowlist. An empty list allows everything.

    Raises: ValidationError for a malformed entry and for too many entries.
    """
    if kind not in AllowlistKind.values:
        raise ValidationError(f"There are no allowlists of the kind {kind!r}.")
    api_key = lock(api_key)
    wanted: dict[str, AllowlistEntry] = {}
    for value in values:
        entry = AllowlistEntry(api_key=api_key, kind=kind, value=value)
        entry.clean()
        wanted.setdefault(entry.value, entry)
    if len(wanted) > MAX_ENTRIES:
        raise ValidationError(
            f"{len(wanted)} entries are too many: a list holds {MAX_ENTRIES}."
        )
    kept = {entry.value: entry for entry in api_key.allowlist.filter(kind=kind)}
    removed = sorted(kept.keys() - wanted.keys())
    added = sorted(wanted.keys() - kept.keys())
    api_key.allowlist.filter(kind=kind, value__in=removed).delete()
    for value in added:
        wanted[value].full_clean()
        wanted[value].save()
    if added or removed:
        record(
            api_key,
            EventType.ALLOWLIST_CHANGED,
            actor,
            kind=str(kind),
            added=added,
            removed=removed,
        )
    return list(api_key.allowlist.filter(kind=kind))
