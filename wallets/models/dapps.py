"""A user's dapps, their identities, tokens and pairing codes."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now, Upper
from django.utils import timezone

from keys.models import User
from legible.fields import NameField
from wallets.identity import parse_origin


class DappKind(models.TextChoices):
    """The kind of a dapp's identity."""

    WEB = "web", "web page"
    APP = "app", "program"


class Dapp(models.Model):
    """A dapp of one user: a web page's origin, or one program.

    The same page is a separate dapp for each user.
    """

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="wallet_dapps"
    )
    kind = models.CharField(max_length=3, choices=DappKind.choices)
    ident = models.CharField(
        "identity",
        max_length=300,
        help_text="The origin of a web page as sent by the browser, or the random id of a program.",
    )
    label = NameField(
        max_length=60, blank=True, help_text="The name that the user gave to a program."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_from = models.GenericIPAddressField(
        null=True, blank=True, help_text="IP address of the dapp when it was paired."
    )
    last_used_at = models.DateTimeField(null=True, blank=True)
    blocked_at = models.DateTimeField(
        null=True, blank=True, help_text="When the user blocked the dapp."
    )
    rejections = models.PositiveSmallIntegerField(
        default=0, help_text="Consecutive rejections within a short time."
    )
    last_rejected_at = models.DateTimeField(null=True, blank=True)
    muted_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Requests are rejected automatically until this time, after too many rejections.",
    )

    class Meta:
        ordering = ["-last_used_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind", "ident"], name="wallet_dapp_once"
            )
        ]
        indexes = [  # for the admin, which lists the dapps of all users
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
        """The name shown to people: an origin, or the user's name for a program."""
        return self.ident if self.kind == DappKind.WEB else self.label or self.ident


class BlockedDapp(models.Model):
    """An identity that staff have blocked for all users."""

    kind = models.CharField(
        max_length=3, choices=DappKind.choices, default=DappKind.WEB
    )
    ident = models.CharField(
        "identity",
        max_length=300,
        help_text="The origin of a web page, such as https://dapp.example, or the id of a program.",
    )
    reason = NameField(max_length=200, blank=True)
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
                violation_error_message="The dapp is already blocked.",
            )
        ]

    def __str__(self) -> str:
        return self.ident

    def clean(self) -> None:
        """Normalise a page's origin: people copy it with a slash from the address bar.

        Raises: ValidationError.
        """
        if self.kind == DappKind.WEB:
            try:
                self.ident = parse_origin(self.ident.strip().rstrip("/").lower())
            except ValueError as error:
                fault = (
                    f"This is {error}. Enter an origin such as https://dapp.example."
                )
                raise ValidationError({"ident": fault}) from error


class TokenQuerySet(models.QuerySet["DappToken"]):
    """Queries for connection tokens."""

    def live(self) -> TokenQuerySet:
        """Return the tokens that are neither revoked nor expired."""
        return self.filter(revoked_at=None, expires_at__gt=timezone.now())


class DappToken(models.Model):
    """A paired dapp's credential for connecting; only its digest is stored.

    It allows requests to the user, and nothing else without the user's consent.
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
        db_default="",  # for processes of the previous version, as below
        editable=False,
        db_index=True,
        help_text="Digest of the former secret, valid until the new one is used.",
    )
    renewed_at = models.DateTimeField(
        default=timezone.now,
        db_default=Now(),
        help_text="When the current secret was created.",
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
    """A one-time code, which its first bearer exchanges for a token.

    challenge: of a page, the S256 challenge that its verifier must match (RFC 7636).
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=3, choices=DappKind.choices)
    ident = models.CharField("identity", max_length=300)
    label = NameField(max_length=60, blank=True)
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
    """An attempt with a wrong code, which counts for a few minutes and is then deleted."""

    remote_address = models.GenericIPAddressField(null=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.remote_address} at {self.at}"
