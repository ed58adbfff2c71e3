"""Users, API keys and their secrets' digests."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from keys import permits
from networks.models import Network, Tracer


class UserManager(BaseUserManager["User"]):
    """Makes users who are known by their e-mail address."""

    def create_user(
        self, email: str, password: str | None = None, **fields: Any
    ) -> User:
        """Make a user; without a password he cannot log in until he sets one."""
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        """Return an address as it is kept: whoever types it, there is one of it."""
        return (email or "").strip().lower()

    def get_by_natural_key(self, username: str | None) -> User:
        """Return the user who logs in with an address."""
        return self.get(email=self.normalize_email(username))

    def create_superuser(
        self, email: str, password: str | None = None, **fields: Any
    ) -> User:
        """Make a user who may do everything in the admin."""
        return self.create_user(
            email, password, is_staff=True, is_superuser=True, **fields
        )


class User(AbstractUser):
    """A person: staff, customer or wallet user, known by his e-mail address."""

    username = None  # type: ignore[assignment]  # Django's documented way to drop it
    email = models.EmailField("e-mail address", unique=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]  # another key than AbstractUser's

    def __str__(self) -> str:
        return self.email


class ApiKey(models.Model):
    """A customer's key: the stable thing that limits and statistics hang on.

    The secrets are its versions, so that rolling a key keeps everything else.
    """

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    is_enabled = models.BooleanField(
        default=True, help_text="Reversible; revoking a version is final."
    )
    networks = models.ManyToManyField(
        Network,
        blank=True,
        related_name="api_keys",
        help_text="None chosen: every network.",
    )
    staff_note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["-id"]
        verbose_name = "API key"

    def __str__(self) -> str:
        return self.name or f"API key {self.pk}"


class Capability(models.TextChoices):
    """What a key may only do where it was granted."""

    TRACE = permits.TRACE, "tracing"


class EntitlementQuerySet(models.QuerySet["Entitlement"]):
    """Words of the trade for entitlements."""

    def live(self) -> EntitlementQuerySet:
        """Return the entitlements whose time is not over."""
        return self.exclude(expires_at__lte=timezone.now())


class Entitlement(models.Model):
    """A capability that staff has granted to an API key on one network."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="entitlements"
    )
    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="+")
    capability = models.CharField(
        max_length=32, choices=Capability.choices, default=Capability.TRACE
    )
    tracers = ArrayField(
        models.CharField(max_length=32, choices=Tracer.choices),
        default=list,
        blank=True,
        help_text="None chosen: all that the network offers.",
    )
    expires_at = models.DateTimeField(null=True, blank=True, help_text="None: never.")
    note = models.CharField(
        max_length=200, blank=True, help_text="Why it was granted; for staff alone."
    )
    granted_by = models.ForeignKey(
        User,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Who gave it these terms; none: the command line.",
    )
    granted_at = models.DateTimeField(
        editable=False, help_text="Since when it has these terms."
    )

    objects = EntitlementQuerySet.as_manager()

    class Meta:
        ordering = ["api_key", "network", "capability"]
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "network", "capability"],
                name="entitlement_once",
                violation_error_message="The key has this entitlement already.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.capability} on {self.network}"


class KeyVersionQuerySet(models.QuerySet["KeyVersion"]):
    """Words of the trade for key versions."""

    def live(self) -> KeyVersionQuerySet:
        """Return the versions that still open a door."""
        return self.filter(revoked_at=None).exclude(expires_at__lte=timezone.now())


class KeyVersion(models.Model):
    """One secret of an API key, of which only the digest is kept."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="versions"
    )
    digest = models.CharField(
        max_length=64, unique=True, editable=False, help_text="Hex SHA-256 of the key."
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

    def __str__(self) -> str:
        return self.hint
