"""A wallet user's accounts, the dapps that he has met, and what he lets them do."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from keys.models import User
from wallets import caip, scopes
from wallets.caip import Address
from wallets.scopes import Scopes


class DappKind(models.TextChoices):
    """How a dapp has shown who it is; the values begin its identity."""

    WEB = "web", "web page"
    APP = "app", "program"


class Account(models.Model):
    """An address that a user shows to dapps, the same on all chains of a namespace."""

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="wallet_accounts"
    )
    namespace = models.CharField(
        max_length=8, default=caip.EIP155, help_text="CAIP-2 namespace of its chains."
    )
    address = models.CharField(
        max_length=128, help_text="In lower case where the case has no meaning."
    )
    label = models.CharField(max_length=60, blank=True)
    position = models.PositiveIntegerField(
        help_text="The account with the lowest is the primary one: dapps see it first."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "namespace", "address"],
                name="wallet_account_once",
                violation_error_message="You have this account already.",
            )
        ]

    def __str__(self) -> str:
        return self.label or self.address

    @property
    def named(self) -> Address:
        """The account as scopes name it."""
        return Address(self.namespace, self.address)


class Dapp(models.Model):
    """What a user knows under one identity: a web page's origin, or one program of his.

    The same page is another dapp to another user.
    """

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="wallet_dapps"
    )
    kind = models.CharField(max_length=3, choices=DappKind.choices)
    ident = models.CharField(
        max_length=300,
        help_text="Of a page its origin, proven by a browser; of a program random.",
    )
    label = models.CharField(
        max_length=60, blank=True, help_text="What the user calls a program."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_from = models.GenericIPAddressField(
        null=True, blank=True, help_text="Where it was when it was paired."
    )
    last_used_at = models.DateTimeField(null=True, blank=True)
    blocked_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when the user wants no more of it."
    )
    rejections = models.PositiveSmallIntegerField(
        default=0, help_text="In a row, each soon after the one before."
    )
    last_rejected_at = models.DateTimeField(null=True, blank=True)
    muted_until = models.DateTimeField(
        null=True, blank=True, help_text="Until then it may not ask: it did too often."
    )

    class Meta:
        ordering = ["-last_used_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind", "ident"], name="wallet_dapp_once"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """What people call it: an origin, or the name that the user gave a program."""
        return self.ident if self.kind == DappKind.WEB else self.label or self.ident


class BlockedDapp(models.Model):
    """An identity that staff have banned for all users."""

    kind = models.CharField(
        max_length=3, choices=DappKind.choices, default=DappKind.WEB
    )
    ident = models.CharField(max_length=300, help_text="https://dapp.example")
    reason = models.CharField(max_length=200, blank=True)
    blocked_by = models.ForeignKey(
        User, null=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    blocked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "ident"],
                name="wallet_blocked_dapp_once",
                violation_error_message="It is blocked already.",
            )
        ]

    def __str__(self) -> str:
        return self.ident


class TokenQuerySet(models.QuerySet["DappToken"]):
    """Words of the trade for connection tokens."""

    def live(self) -> TokenQuerySet:
        """Return the tokens that still open a socket."""
        return self.filter(revoked_at=None, expires_at__gt=timezone.now())


class DappToken(models.Model):
    """What a paired dapp shows when it connects, of which only the digest is kept.

    It gives the right to ask, never the right to act.
    """

    dapp = models.ForeignKey(Dapp, on_delete=models.CASCADE, related_name="tokens")
    digest = models.CharField(
        max_length=64,
        unique=True,
        editable=False,
        help_text="Hex SHA-256 of the token.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_from = models.GenericIPAddressField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.GenericIPAddressField(null=True, blank=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = TokenQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"token {self.pk} of {self.dapp}"


class Pairing(models.Model):
    """A one-time code that becomes a token in the hands of whoever shows it first.

    challenge: of a page, the S256 challenge that its verifier has to fit (RFC 7636).
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=3, choices=DappKind.choices)
    ident = models.CharField(max_length=300)
    label = models.CharField(max_length=60, blank=True)
    digest = models.CharField(
        max_length=64, unique=True, editable=False, help_text="Hex SHA-256 of the code."
    )
    challenge = models.CharField(max_length=43, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"pairing of {self.label or self.ident}"


class FailedPairing(models.Model):
    """A code that somebody guessed wrong; counted for a few minutes, then deleted."""

    remote_address = models.GenericIPAddressField(null=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.remote_address} at {self.at}"


class Session(models.Model):
    """What a dapp may do: one for each dapp of a user, over all its sockets.

    The row stays when the session ends, so that versions go on counting.
    """

    dapp = models.OneToOneField(Dapp, on_delete=models.CASCADE, related_name="session")
    stored_scopes = models.JSONField(
        default=list,
        db_column="scopes",
        help_text="As wallets.scopes.StoredScope; empty: there is no session.",
    )
    version = models.PositiveBigIntegerField(
        default=0, help_text="Counts the changes, so that what is old is known to be."
    )
    changed_by = models.CharField(
        max_length=36,
        blank=True,
        help_text="The socket whose call made the last change; empty: the wallet.",
    )
    changed_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True, db_index=True)

    def __str__(self) -> str:
        return f"session of {self.dapp}"

    @property
    def scopes(self) -> Scopes:
        """What the dapp may do, nothing when the session is over."""
        if self.has_expired(timezone.now()):
            return {}
        return scopes.from_stored(self.stored_scopes)

    def has_expired(self, now: datetime) -> bool:
        """Return whether the session's time is over."""
        return self.expires_at is not None and self.expires_at <= now


class RequestState(models.TextChoices):
    """What became of a request; only pending ones can be decided."""

    PENDING = "pending", "pending"
    APPROVED = "approved", "approved"
    REJECTED = "rejected", "rejected"
    EXPIRED = "expired", "expired"
    WITHDRAWN = "withdrawn", "withdrawn"


CREATE_SESSION = "wallet_createSession"
"""The call of which a dapp may have one waiting at a time."""


class ConsentRequestQuerySet(models.QuerySet["ConsentRequest"]):
    """Words of the trade for requests."""

    def pending(self) -> ConsentRequestQuerySet:
        """Return the requests that can still be decided."""
        return self.filter(state=RequestState.PENDING, expires_at__gt=timezone.now())


class ConsentRequest(models.Model):
    """A question to the user, while a dapp's call waits for the answer."""

    dapp = models.ForeignKey(Dapp, on_delete=models.CASCADE, related_name="requests")
    method = models.CharField(max_length=64, help_text="What the dapp has called.")
    body = models.JSONField(help_text="What is asked, in the form of the method.")
    state = models.CharField(
        max_length=9, choices=RequestState.choices, default=RequestState.PENDING
    )
    outcome = models.JSONField(
        null=True, blank=True, help_text="What an approved call is answered with."
    )
    socket = models.CharField(max_length=36, help_text="Who waits for the answer.")
    asked_from = models.GenericIPAddressField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)

    objects = ConsentRequestQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["dapp"],
                condition=models.Q(state=RequestState.PENDING, method=CREATE_SESSION),
                name="wallet_one_pending_session",
            )
        ]
        indexes = [
            models.Index(
                fields=["socket"],
                condition=models.Q(state=RequestState.PENDING),
                name="wallet_pending_by_socket",
            )
        ]

    def __str__(self) -> str:
        return f"{self.method} of {self.dapp}"


class Event(models.TextChoices):
    """What the log tells of."""

    PAIRED = "paired", "dapp paired"
    ASKED = "asked", "request made"
    REJECTED = "rejected", "request rejected"
    EXPIRED = "expired", "request expired"
    WITHDRAWN = "withdrawn", "request withdrawn"
    GRANTED = "granted", "session granted"
    CHANGED = "changed", "session changed"
    REVOKED = "revoked", "session ended"
    SESSION_EXPIRED = "session_expired", "session expired"
    DISCONNECTED = "disconnected", "tokens revoked"
    BLOCKED = "blocked", "dapp blocked"
    UNBLOCKED = "unblocked", "dapp let in again"
    ACCOUNT_ADDED = "account_added", "account added"
    ACCOUNT_REMOVED = "account_removed", "account removed"
    SIGNED = "signed", "signature given"


class Actor(models.TextChoices):
    """Who has done it."""

    USER = "user", "you"
    DAPP = "dapp", "the dapp"
    STAFF = "staff", "support"
    SYSTEM = "system", "the wallet"


class Activity(models.Model):
    """One line of a user's log, written with what it tells of and never changed.

    dapp_name: outlives the dapp.
    details: what has changed, in words of the API.
    """

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="wallet_activities"
    )
    dapp = models.ForeignKey(
        Dapp, null=True, on_delete=models.SET_NULL, related_name="activities"
    )
    dapp_name = models.CharField(max_length=300, blank=True)
    event = models.CharField(max_length=16, choices=Event.choices)
    actor = models.CharField(max_length=6, choices=Actor.choices)
    remote_address = models.GenericIPAddressField(null=True, blank=True)
    details = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "activities"
        indexes = [models.Index(fields=["user", "-id"], name="wallet_log_of_user")]

    def __str__(self) -> str:
        return f"{self.get_event_display()}: {self.dapp_name}"
