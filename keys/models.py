"""Users, API keys and their secrets' digests."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.utils import timezone

from networks.models import Network


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
    may_trace = models.BooleanField(
        "may trace", default=False, help_text="Whether debug_ methods are granted."
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
