"""Events of the audit log as sentences for staff.

Texts that people have typed are shortened, and their hidden characters are shown as
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from keys.models import ApiKey, EventType, KeyEvent, MemberEvent, MemberEventType
from legible.text import visible

SHOWN_CHARACTERS = 200
"""Maximum length of a text within a sentence."""

SERVICE = "The service"
"""The actor of events without a user: the command line, or the service itself."""

_UNSHOWN = ("request", "version")
"""Internal ids in an event's data."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence about a key, which a page can make a link."""

    before: str
    key: str
    after: str

    def __str__(self) -> str:
        """Return the whole sentence."""
        return f"{self.before}{self.key}{self.after}"


def key_label(api_key: ApiKey, hint: str = "") -> str:
    """Return a key's name, the end of a secret's hint, and the owner.

    hint: of the secret. By default, that of the newest secret.

    `versions` and the owner should be prefetched.
    """
    newest = max(api_key.versions.all(), key=lambda version: version.pk, default=None)
    hint = hint or (newest.hint if newest else "")
    end = f" ({_end_of(hint)})" if hint else ""
    return f"{shown(str(api_key))}{end} of {shown(str(api_key.owner))}"


def sentence_of(event: KeyEvent) -> Sentence:
    """Return an event as a sentence: `Alice rolled key prod (…ab12) of Bob`.

    The key with its owner and versions, the actor and the token should be prefetched.
    """
    data: Mapping[str, Any] = event.data
    parts = _PARTS.get(event.type)
    if parts is None:  # a type of a later version
        words = f"{event.get_type_display()}: key "
        before, terms, remark = f"{_actor(event)} · {words}", "", _listed(data)
    else:
        verb, describe = parts
        before, (terms, remark) = f"{_actor(event)} {verb} ", describe(data)
    origin = f" from {event.actor_ip}" if event.actor_ip else ""
    hint = str(data.get("hint") or "")
    after = f"{terms}{origin}{remark}"
    return Sentence(before, key_label(event.api_key, hint), after)


def shown(text: str) -> str:
    """Return a text that people have typed, for a place within a sentence."""
    legible = " ".join(visible(text).split())
    if len(legible) > SHOWN_CHARACTERS:
        return f"{legible[: SHOWN_CHARACTERS - 1]}…"
    return legible


def _actor(event: KeyEvent) -> str:
    if event.type == EventType.USED_AFTER_REVOCATION:
        return "A client"
    if event.actor is None:
        return SERVICE
    name = shown(event.actor.get_full_name() or event.actor.email)
    if event.actor_role:
        name = f"{name} ({event.actor_role})"
    if event.token is None:
        return name
    return f"{name}, with the token {shown(event.token.name)} ({event.token.hint}),"


def _end_of(hint: str) -> str:
    """Return the part of a hint that distinguishes secrets: `…ab12`."""
    return f"…{hint[-4:]}"


def _nothing(data: Mapping[str, Any]) -> tuple[str, str]:
    return "", ""


def _created(data: Mapping[str, Any]) -> tuple[str, str]:
    return _networks(data.get("networks")), _until(data, ", expiring ")


def _rolled(data: Mapping[str, Any]) -> tuple[str, str]:
    old = [_end_of(str(hint)) for hint in data.get("replaced") or []]
    if not old:
        return "", ""
    verb = "stays" if len(old) == 1 else "stay"
    end = _moment(data.get("replaced_until"))
    return "", f"; {' and '.join(old)} {verb} valid until {end}"


def _reason(data: Mapping[str, Any]) -> tuple[str, str]:
    reason = data.get("reason")
    return "", f": “{shown(str(reason))}”" if reason else ""


def _updated(data: Mapping[str, Any]) -> tuple[str, str]:
    changes = []
    for field, values in data.items():
        before, after = (_value(field, one) or "none" for one in values)
        changes.append(f"{_words(field)} from {before} to {after}")
    return "", f": {'; '.join(changes)}" if changes else ""


def _note(data: Mapping[str, Any]) -> tuple[str, str]:
    note = shown(str(data.get("note") or ""))
    return "", f": “{note}”" if note else ": now empty"


def _terms(data: Mapping[str, Any]) -> tuple[str, str]:
    tracers = ", ".join(map(str, data.get("tracers") or [])) or "all tracers"
    end = _until(data, " until ")
    return f" on {data.get('network')} ({tracers}){end}", ""


def _withdrawn(data: Mapping[str, Any]) -> tuple[str, str]:
    return f" on {data.get('network')}", ""


def _access(data: Mapping[str, Any]) -> tuple[str, str]:
    answer = shown(str(data.get("answer") or ""))
    return _terms(data)[0], f": “{answer}”" if answer else ""


def _limits(data: Mapping[str, Any]) -> tuple[str, str]:
    before, after = data.get("before") or {}, data.get("after") or {}
    changes = [
        f"{_words(field)} from {_value(field, before.get(field)) or 'none'}"
        f" to {_value(field, after.get(field)) or 'none'}"
        for field in after
        if before.get(field) != after.get(field)
    ]
    return "", f": {'; '.join(changes)}" if changes else ""


def _allowlist(data: Mapping[str, Any]) -> tuple[str, str]:
    changes = [
        f"{verb} {_words(str(data.get('kind')))} {shown(', '.join(map(str, data[verb])))}"
        for verb in ("added", "removed")
        if data.get(verb)
    ]
    return "", f": {'; '.join(changes)}" if changes else ""


_Describe = Callable[[Mapping[str, Any]], tuple[str, str]]

_PARTS: dict[str, tuple[str, _Describe]] = {
    EventType.CREATED: ("created key", _created),
    EventType.REVEALED: ("revealed the secret of key", _nothing),
    EventType.UPDATED: ("changed key", _updated),
    EventType.ANNOTATED: ("changed the staff note of key", _note),
    EventType.ROLLED: ("rolled key", _rolled),
    EventType.REVOKED: ("revoked a secret of key", _reason),
    EventType.DISABLED: ("disabled key", _reason),
    EventType.ENABLED: ("enabled key", _nothing),
    EventType.DELETED: ("deleted key", _nothing),
    EventType.OWNER_DISABLED: ("deactivated the owner of key", _nothing),
    EventType.OWNER_ENABLED: ("activated the owner of key", _nothing),
    EventType.ENTITLEMENT_GRANTED: ("granted tracing to key", _terms),
    EventType.ENTITLEMENT_CHANGED: ("changed the tracing of key", _terms),
    EventType.ENTITLEMENT_REVOKED: ("withdrew tracing from key", _withdrawn),
    EventType.LIMITS_CHANGED: ("changed the limits of key", _limits),
    EventType.ALLOWLIST_CHANGED: ("changed the allowlists of key", _allowlist),
    EventType.ACCESS_REQUESTED: ("requested tracing for key", _terms),
    EventType.ACCESS_APPROVED: ("approved the request for tracing of key", _access),
    EventType.ACCESS_DECLINED: ("declined the request for tracing of key", _access),
    EventType.ACCESS_WITHDRAWN: ("withdrew the request for tracing of key", _terms),
    EventType.USED_AFTER_REVOCATION: ("used a revoked secret of key", _nothing),
}
"""Verb, and functions that return terms and a remark, by type of event. The IP address is
between the two."""


def _networks(slugs: Any) -> str:
    return f" for {', '.join(map(str, slugs))}" if slugs else " for all networks"


def _until(data: Mapping[str, Any], words: str) -> str:
    end = data.get("expires_at")
    return f"{words}{_moment(end)}" if end else ""


def _moment(text: Any) -> str:
    """Return an ISO 8601 time in UTC, to the minute."""
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return shown(str(text))


def _value(field: str, value: Any) -> str:
    """Return a field's value, "" for none."""
    if value is None or value == [] or value == "":
        return "all" if field == "networks" and value == [] else ""
    if field.endswith("_at"):
        return _moment(value)
    if isinstance(value, list):
        return shown(", ".join(map(str, value)))
    return f"{value:,}" if isinstance(value, int) else shown(str(value))


def _words(field: str) -> str:
    return field.removesuffix("_at").replace("_", " ")


def _listed(data: Mapping[str, Any]) -> str:
    """Return the details of an event of an unknown type."""
    pairs = [
        f"{_words(str(name))} {_value(str(name), value)}"
        for name, value in data.items()
        if name not in _UNSHOWN and _value(str(name), value)
    ]
    return f" · {shown('; '.join(pairs))}" if pairs else ""


_SENTENCES = {
    MemberEventType.INVITED: "{actor} invited {subject} to the account of {account} as {role}",
    MemberEventType.WITHDRAWN: "{actor} withdrew the invitation of {subject} to the "
    "account of {account}",
    MemberEventType.JOINED: "{subject} joined the account of {account} as {role}",
    MemberEventType.ROLE_CHANGED: "{actor} changed the role of {subject} in the account "
    "of {account} from {former} to {role}",
    MemberEventType.REMOVED: "{actor} removed {subject} from the account of {account}",
    MemberEventType.LEFT: "{subject} left the account of {account}",
}


def member_sentence(event: MemberEvent) -> str:
    """Return an event as a sentence: `Alice removed Carol from the account of Bob`.

    The account, the actor and the member should be prefetched.
    """
    sentence = _SENTENCES[MemberEventType(event.type)]
    words = sentence.format(
        actor=SERVICE if event.actor is None else shown(event.actor.email),
        subject=shown(event.subject),
        account=shown(event.account.email),
        role=event.get_role_display(),
        former=event.get_former_role_display(),
    )
    return f"{words}, from {event.actor_ip}" if event.actor_ip else words
