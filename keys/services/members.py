"""Changes of the members of customer accounts.

A change locks the user of its account first, so that concurrent changes of one account
are serialized, and checks the actor's role after that.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from keys.models import (
    Invitation,
    MemberEvent,
    MemberEventType,
    Membership,
    Role,
    User,
)
from keys.selectors import role_in
from keys.services.events import SYSTEM, Actor

LIFETIME = timedelta(days=7)
"""How long an invitation can be accepted."""

MAX_MEMBERS = 100
"""Most members and invitations of one account."""

MAX_ACCOUNTS = 50
"""Maximum number of other users' accounts that one user can be a member of."""


class InvitationUseless(Exception):
    """Raised for an invitation that was accepted, withdrawn or replaced, or has expired.

    It is also raised for an unknown token and for the wrong user, so that the answer
    does not reveal which of these is the reason.
    """


@dataclass(frozen=True, slots=True)
class IssuedInvitation:
    """An invitation with the token for its link, which is not stored.

    token: repr() omits it, so that no log contains it.
    """

    invitation: Invitation
    token: str = field(repr=False)


@transaction.atomic
def invite(
    *, account: User, email: str, role: str, actor: Actor = SYSTEM
) -> IssuedInvitation:
    """Invite the holder of an email address, who may or may not be a user.

    An earlier invitation of the same address becomes invalid.

    Raises: ValidationError for an invalid address or role, for a member's address, for
        too many members, and if the actor is not an owner.
    """
    account = _lock(account, actor)
    email = User.objects.normalize_email(email)
    members = account.members.filter(member__email=email)
    if email == account.email or members.exists():
        raise ValidationError({"email": "This person is a member already."})
    account.invitations.filter(email=email).delete()
    if account.members.count() + account.invitations.count() >= MAX_MEMBERS:
        raise ValidationError(
            f"An account has at most {MAX_MEMBERS} members and invitations. Remove a "
            "member, or withdraw an invitation."
        )
    token = secrets.token_urlsafe(32)
    invitation = Invitation(
        account=account,
        email=email,
        role=role,
        digest=_digest(token),
        invited_by=actor.user,
        expires_at=timezone.now() + LIFETIME,
    )
    invitation.full_clean()
    invitation.save()
    _record(account, MemberEventType.INVITED, actor, email=email, role=role)
    return IssuedInvitation(invitation, token)


@transaction.atomic
def withdraw_invitation(*, invitation: Invitation, actor: Actor = SYSTEM) -> None:
    """Withdraw an invitation, so that its link becomes invalid.

    Raises: ValidationError if the actor is not an owner, and if the invitation was
        accepted or withdrawn before.
    """
    account = _lock(invitation.account, actor)
    found = account.invitations.filter(pk=invitation.pk).first()
    if found is None:
        raise ValidationError("This invitation was already accepted or withdrawn.")
    _withdraw(found, actor)


def find_invitation(token: str) -> Invitation:
    """Return the invitation of a link, which remains valid.

    Raises: InvitationUseless.
    """
    found = Invitation.objects.select_related("account", "invited_by")
    try:
        return found.get(
            digest=_digest(token),
            expires_at__gt=timezone.now(),
            account__is_active=True,
        )
    except Invitation.DoesNotExist as error:
        raise InvitationUseless from error


@transaction.atomic
def accept_invitation(*, token: str, user: User, actor: Actor) -> Membership:
    """Make a user a member, and use up the invitation.

    Raises: InvitationUseless, also if the invitation is for the address of another user;
        ValidationError if the user is a member already, or of too many accounts.
    """
    account = User.objects.select_for_update(no_key=True).get(
        pk=find_invitation(token).account_id
    )
    invitation = find_invitation(token)  # it may have been used until the lock
    is_theirs = invitation.email == User.objects.normalize_email(user.email)
    if not (is_theirs and user.is_active) or user.pk == account.pk:
        raise InvitationUseless
    if account.members.filter(member=user).exists():
        raise ValidationError("You are a member of this account already.")
    if user.memberships.count() >= MAX_ACCOUNTS:
        raise ValidationError(
            f"You can be a member of at most {MAX_ACCOUNTS} accounts. Leave one first."
        )
    role = Role(invitation.role)
    invitation.delete()
    membership = Membership.objects.create(account=account, member=user, role=role)
    _record(account, MemberEventType.JOINED, actor, member=user, role=role)
    return membership


@transaction.atomic
def change_role(
    *, membership: Membership, role: str, actor: Actor = SYSTEM
) -> Membership:
    """Change a member's role. No effect if they have it already.

    A member who is no longer an owner loses the invitations that they have sent.

    Raises: ValidationError for an unknown role, if the actor is not an owner, and if the
        member has left.
    """
    membership = _lock_member(membership, actor)
    former = membership.role
    if role == former:
        return membership
    membership.role = role
    membership.full_clean()
    membership.save()
    _record(
        membership.account,
        MemberEventType.ROLE_CHANGED,
        actor,
        member=membership.member,
        role=role,
        former_role=former,
    )
    if former == Role.OWNER:
        _withdraw_sent_by(membership, actor)
    return membership


@transaction.atomic
def remove_member(*, membership: Membership, actor: Actor = SYSTEM) -> None:
    """Remove a member from an account, and withdraw the invitations that they have sent.

    Raises: ValidationError if the actor is not an owner, and if the member has left.
    """
    membership = _lock_member(membership, actor)
    _end(membership, MemberEventType.REMOVED, actor)


@transaction.atomic
def leave_account(*, account: User, user: User, actor: Actor) -> None:
    """End a user's membership.

    Raises: ValidationError for the user's own account, which always has them as its
        owner, and if they are not a member.
    """
    if account.pk == user.pk:
        raise ValidationError("You can't leave your own account.")
    User.objects.select_for_update(no_key=True).get(pk=account.pk)
    found = Membership.objects.select_related("account", "member")
    membership = found.filter(account=account, member=user).first()
    if membership is None:
        raise ValidationError("You are not a member of this account.")
    _end(membership, MemberEventType.LEFT, actor)


def _lock(account: User, actor: Actor) -> User:
    """Lock an account. Raises: ValidationError if the actor is not an owner of it."""
    account = User.objects.select_for_update(no_key=True).get(pk=account.pk)
    if actor.user is not None and role_in(actor.user, account) != Role.OWNER:
        raise ValidationError("Only owners of an account can change its members.")
    return account


def _lock_member(membership: Membership, actor: Actor) -> Membership:
    _lock(membership.account, actor)
    found = Membership.objects.select_related("account", "member")
    current = found.filter(pk=membership.pk).first()
    if current is None:
        raise ValidationError("This person is no longer a member.")
    return current


def _end(membership: Membership, event: MemberEventType, actor: Actor) -> None:
    _withdraw_sent_by(membership, actor)
    _record(
        membership.account,
        event,
        actor,
        member=membership.member,
        role=membership.role,
    )
    membership.delete()


def _withdraw_sent_by(membership: Membership, actor: Actor) -> None:
    """Withdraw a former owner's invitations, which could be to their other addresses."""
    sent = membership.account.invitations.filter(invited_by=membership.member)
    for invitation in sent:
        _withdraw(invitation, actor)


def _withdraw(invitation: Invitation, actor: Actor) -> None:
    _record(
        invitation.account,
        MemberEventType.WITHDRAWN,
        actor,
        email=invitation.email,
        role=invitation.role,
    )
    invitation.delete()


def _record(
    account: User,
    event: MemberEventType,
    actor: Actor,
    *,
    role: str,
    member: User | None = None,
    email: str = "",
    former_role: str = "",
) -> None:
    MemberEvent.objects.create(
        account=account,
        type=event,
        actor=actor.user,
        actor_ip=actor.ip,
        member=member,
        email=email,
        role=role,
        former_role=former_role,
    )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
