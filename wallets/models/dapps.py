"""The dapps that a user has met, and how they show who they are."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now, Upper
from django.utils import timezone

from keys.models import User
from wallets.identity import parse_origin


class DappKind(models.TextChoices):
    """How a dapp has shown who it is; the values begin its identity."""

    WEB = "web", "web page"
    APP = "app", "program"


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
        indexes = [  # for staff, who look over all users
            models.Index(fields=["ident", "kind"], name="wallet_dapp_by_ident"),
            models.Index(
                Upper("label"),
                condition=~models.Q(label=""),
                name="wallet_dapp_by_label",
            ),
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

    def clean(self) -> None:
        """Bring a page's origin into the form that pages are compared with.

        People copy it with a slash from where browsers show it.
        Raises: ValidationError.
        """
        if self.kind == DappKind.WEB:
            try:
                self.ident = parse_origin(self.ident.strip().rstrip("/").lower())
            except ValueError as error:
                fault = f"This is {error}, such as https://dapp.example."
                raise ValidationError({"ident": fault}) from error


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
    former_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",  # for processes of the version before, as below
        editable=False,
        db_index=True,
        help_text="Of the secret before, good until the new one has been shown.",
    )
    renewed_at = models.DateTimeField(
        default=timezone.now,
        db_default=Now(),
        help_text="Since when it has the secret that it has.",
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
