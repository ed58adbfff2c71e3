"""Members of customer accounts, invitations, and the log of both.

A customer account is identified by the user who owns its keys. This user is always one
of its owners, without a row. Each other member has a row.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from keys.models.append_only import AppendOnly
from keys.models.users import User
from legible.fields import EmailField


class Role(models.TextChoices):
    """The role of a member in a customer account. The values never change."""

    OWNER = "owner", "owner"
    DEVELOPER = "developer", "developer"
    VIEWER = "viewer", "viewer"

    def includes(self, other: Role) -> bool:
        """Return whether this role permits all that another one permits."""
        ranks = list(Role)
        return ranks.index(self) <= ranks.index(other)


class Membership(models.Model):
    """A user's role in the account of another user."""

    account = models.ForeignKey(User, on_delete=models.CASCADE, related_name="members")
    member = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=16, choices=Role.choices)
    joined_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["account", "member"], name="member_once"),
            models.CheckConstraint(
                condition=~Q(account=F("member")), name="member_of_another"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.member}, {self.role} of {self.account}"


class Invitation(models.Model):
    """An invitation to an account, for the holder of an email address.

    The row is deleted when the invitation is accepted or withdrawn.
    """

    account = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="invitations"
    )
    email = EmailField("email address")
    role = models.CharField(max_length=16, choices=Role.choices)
    digest = models.CharField(
        max_length=64,
        unique=True,
        editable=False,
        help_text="Hex SHA-256 of the token in the emailed link.",
    )
    invited_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["account", "email"], name="invited_once")
        ]

    def __str__(self) -> str:
        return f"{self.email}, {self.role} of {self.account}"

    @property
    def is_expired(self) -> bool:
        """Whether the link can no longer be used."""
        return self.expires_at <= timezone.now()


class MemberEventType(models.TextChoices):
    """Types of changes of members. The values never change."""

    INVITED = "member.invited", "invited"
    WITHDRAWN = "member.invitation_withdrawn", "invitation withdrawn"
    JOINED = "member.joined", "joined"
    ROLE_CHANGED = "member.role_changed", "role changed"
    REMOVED = "member.removed", "removed"
    LEFT = "member.left", "left"


class MemberEvent(AppendOnly):
    """One change of an account's members, written in its transaction, never modified.

    A trigger in the database enforces what `AppendOnly` checks.
    """

    at = models.DateTimeField(default=timezone.now)
    account = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="member_events"
    )
    type = models.CharField(max_length=32, choices=MemberEventType.choices)
    actor = models.ForeignKey(
        User,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Empty: the command line, or the service itself.",
    )
    actor_ip = models.GenericIPAddressField(null=True, blank=True)
    member = models.ForeignKey(
        User,
        null=True,
        blank=True,
        db_index=False,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The member who was changed. Empty: an invited person without an account.",
    )
    email = models.CharField(
        max_length=254, blank=True, help_text="The invited email address."
    )
    role = models.CharField(max_length=16, choices=Role.choices)
    former_role = models.CharField(max_length=16, choices=Role.choices, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["account", "-id"], name="member_event_of_account")
        ]

    def __str__(self) -> str:
        return f"{self.type} at {self.at:%Y-%m-%d %H:%M:%S}"

    @property
    def subject(self) -> str:
        """The email address of the member or invited person that was changed."""
        return self.member.email if self.member else self.email
