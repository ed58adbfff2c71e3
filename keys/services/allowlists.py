"""Changes of allowlists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.core.exceptions import ValidationError
from django.db import transaction

from keys.allowlists import MAX_ENTRIES
from keys.models import AllowlistEntry, AllowlistKind, ApiKey, EventType
from keys.served_methods import served_methods, similar_method
from keys.services.events import SYSTEM, Actor, lock, record

MAX_SUGGESTIONS = 20
"""Most unknown methods that are reported with a suggestion, because each one is compared
with all served methods, which takes milliseconds. Further ones are only counted."""


@transaction.atomic
def set_allowlists(
    *,
    api_key: ApiKey,
    lists: Mapping[AllowlistKind, Iterable[str]],
    actor: Actor = SYSTEM,
) -> None:
    """Replace the entries of some kinds of allowlists, or of none of them.

    lists: the entries by kind. An empty list allows everything.

    Raises: ValidationError with the messages of each kind that has malformed entries,
        unknown methods or too many entries.
    """
    api_key = lock(api_key)
    faults: dict[str, list[str]] = {}
    for kind, values in lists.items():
        wanted, messages = _read(api_key, kind, values)
        if messages:
            faults[str(kind)] = messages
        elif not faults:
            _replace(api_key, kind, wanted, actor)
    if faults:
        raise ValidationError(faults)


@transaction.atomic
def set_allowlist(
    *,
    api_key: ApiKey,
    kind: str,
    values: Iterable[str],
    actor: Actor = SYSTEM,
) -> list[AllowlistEntry]:
    """Replace the entries of one kind of allowlist. An empty list allows everything.

    Raises: ValidationError for malformed entries, unknown methods and too many entries.
    """
    if kind not in AllowlistKind.values:
        raise ValidationError(f"Unknown kind of allowlist: {kind!r}.")
    api_key = lock(api_key)
    wanted, messages = _read(api_key, AllowlistKind(kind), values)
    if messages:
        raise ValidationError({"values": messages})
    _replace(api_key, AllowlistKind(kind), wanted, actor)
    return list(api_key.allowlist.filter(kind=kind))


def _read(
    api_key: ApiKey, kind: AllowlistKind, values: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return the normalised entries, and error messages. Entries of a list are unique."""
    wanted: dict[str, None] = {}
    messages = []
    for value in values:
        entry = AllowlistEntry(api_key=api_key, kind=kind, value=value)
        try:
            entry.clean()
        except ValidationError as error:
            messages += error.messages
        else:
            wanted[entry.value] = None
    if kind is AllowlistKind.METHOD:
        messages += _unknown_methods(api_key, wanted)
    if len(wanted) > MAX_ENTRIES:
        messages.append(
            f"{len(wanted)} entries are too many: a list has at most {MAX_ENTRIES}."
        )
    return list(wanted), list(dict.fromkeys(messages))


def _unknown_methods(api_key: ApiKey, names: Iterable[str]) -> list[str]:
    """Return messages about methods that are not served, except those listed already."""
    served = served_methods()
    if not served:
        return []
    unknown = [name for name in names if name not in served]
    kept = api_key.allowlist.filter(kind=AllowlistKind.METHOD, value__in=unknown)
    known = set(kept.values_list("value", flat=True)) if unknown else set()
    reported = [name for name in unknown if name not in known]
    messages = []
    for name in reported[:MAX_SUGGESTIONS]:
        similar = similar_method(name, served)
        hint = f" Did you mean {similar}?" if similar else ""
        messages.append(f"Unknown method: {name}.{hint}")
    if more := len(reported) - len(messages):
        messages.append(f"{more} more names are unknown.")
    return messages


def _replace(
    api_key: ApiKey, kind: AllowlistKind, wanted: list[str], actor: Actor
) -> None:
    kept = set(api_key.allowlist.filter(kind=kind).values_list("value", flat=True))
    removed = sorted(kept.difference(wanted))
    added = sorted(set(wanted) - kept)
    api_key.allowlist.filter(kind=kind, value__in=removed).delete()
    for value in added:
        entry = AllowlistEntry(api_key=api_key, kind=kind, value=value)
        entry.full_clean()
        entry.save()
    if added or removed:
        record(
            api_key,
            EventType.ALLOWLIST_CHANGED,
            actor,
            kind=str(kind),
            added=added,
            removed=removed,
        )
