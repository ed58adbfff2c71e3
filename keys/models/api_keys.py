"""API keys, and the digests of their secrets."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from keys.models.users import User
from legible.fields import NameField, NoteField
from networks.models import Network


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Queries of API keys."""

    def kept(self) -> ApiKeyQuerySet:
        """Return the keys that were not deleted."""
        return self.filter(deleted_at=None)


class ApiKey(models.Model):
    """A customer's key, to which limits, entitlements and statistics belong.

    Its secrets are its versions. They can be replaced without a change of the key.
    """

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    name = NameField(max_length=100, blank=True)
    is_enabled = models.BooleanField(
        default=True,
        help_text="A disabled key can be enabled again. Revoking is permanent.",
    )
    networks = models.ManyToManyField(
        Network,
        blank=True,
        related_name="api_keys",
        help_text="Networks for which the key is valid. Select none for all networks.",
    )
    expires_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Expiry of all secrets of the key. Empty: they do not expire.",
    )
    staff_note = NoteField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    is_issued_by_staff = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Whether the key does not count towards KEYS_PER_CUSTOMER.",
    )
    deleted_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When the key was deleted. Its events and usage are kept.",
    )

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "API key"
        permissions = [("disable_apikey", "Can disable and enable API keys")]
        indexes = [
            models.Index(
                fields=["expires_at"],
                condition=Q(expires_at__isnull=False),
                name="key_by_expiry",
            ),
            models.Index(
                fields=["id"], condition=Q(is_enabled=False), name="key_disabled"
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"API key {self.pk}"


class KeyVersionQuerySet(models.QuerySet["KeyVersion"]):
    """Queries of key versions."""

    def live(self) -> KeyVersionQuerySet:
        """Return the versions that authenticate requests now."""
        return self.unended().exclude(api_key__expires_at__lte=timezone.now())

    def unended(self) -> KeyVersionQuerySet:
        """Return the versions that are neither revoked nor expired themselves.

        The key of such a version may be disabled or expired, in which case the version
        is invalid until the key is enabled or gets a later expiry.
        """
        now = timezone.now()
        return self.filter(revoked_at=None).exclude(expires_at__lte=now)


class KeyVersion(models.Model):
    """One secret of an API key. Only its digest is stored."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="versions"
    )
    digest = models.CharField(
        max_length=64,
        unique=True,
        editable=False,
        help_text="Hex SHA-256 of the secret.",
    )
    hint = models.CharField(
        max_length=12, editable=False, help_text="First seven and last four characters."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    revoke_reason = models.CharField(max_length=200, blank=True)

    objects = KeyVersionQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["hint"], name="version_by_hint"),
            models.Index(
                fields=["expires_at"],
                condition=Q(expires_at__isnull=False, revoked_at=None),
                name="version_by_expiry",
            ),
            models.Index(
                fields=["api_key"],
                condition=Q(revoked_at__isnull=False),
                name="version_revoked",
            ),
        ]

    def __str__(self) -> str:
        return self.hint

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the version. A trigger in the database checks the same rule.

        Raises: ValidationError if a revocation is changed.
        """
        revoked = KeyVersion.objects.filter(pk=self.pk).exclude(revoked_at=None)
        if self.pk and revoked.exclude(revoked_at=self.revoked_at).exists():
            raise ValidationError("A revoked secret can't be made valid again.")
        super().save(*args, **kwargs)
