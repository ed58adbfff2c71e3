"""Users, identified by their email addresses."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction

from keys.models.notice_kinds import NoticeKind
from keys.signals import password_changed
from legible.fields import EmailField, NameField


class UserManager(BaseUserManager["User"]):
    """Creates users, who are identified by their email address."""

    def create_user(
        self, email: str, password: str | None = None, **fields: Any
    ) -> User:
        """Create a user. Without a password, they can't log in until they set one."""
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        """Return the normalized form of an address, which is unique."""
        return (email or "").strip().lower()

    def get_by_natural_key(self, username: str | None) -> User:
        """Return the user with an email address. Raises: User.DoesNotExist."""
        return self.get(email=self.normalize_email(username))

    def create_superuser(
        self, email: str, password: str | None = None, **fields: Any
    ) -> User:
        """Create a superuser."""
        return self.create_user(
            email, password, is_staff=True, is_superuser=True, **fields
        )


class User(AbstractUser):
    """A staff user, customer or wallet user, identified by their email address."""

    username = None  # type: ignore[assignment]  # Django's documented way to drop it
    email = EmailField("email address", unique=True)
    first_name = NameField("first name", max_length=150, blank=True)
    last_name = NameField("last name", max_length=150, blank=True)

    muted_notices = ArrayField(
        models.CharField(max_length=16, choices=NoticeKind.choices),
        default=list,
        db_default=[],
        blank=True,
        editable=False,
        help_text="Kinds of emails about keys that the user does not want.",
    )

    _password: str | None
    """A new password, which Django stores here between `set_password` and `save`."""

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]  # another key than AbstractUser's

    class Meta:
        verbose_name = "user"
        verbose_name_plural = "users"
        indexes = [
            models.Index(
                fields=["id"], condition=models.Q(is_active=False), name="user_inactive"
            )
        ]

    def __str__(self) -> str:
        return self.email

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, and send `password_changed` if the password has changed."""
        is_new_password = not self._state.adding and self._password is not None
        with transaction.atomic():
            # The receivers lock rows before this method locks the user. Requests to a
            # user take the same order, so that the two can't deadlock.
            if is_new_password:
                password_changed.send(sender=User, user=self)
            super().save(*args, **kwargs)
