"""Events of the members of an account as sentences."""

from __future__ import annotations

from keys.audit_sentences import SERVICE, shown
from keys.models import MemberEvent, MemberEventType

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
