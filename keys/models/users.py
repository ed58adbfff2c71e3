"""Users, known by their e-mail addresses."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models, transaction

from keys.signals import password_changed


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

    _password: str | None
    """A new password, which Django keeps from `set_password` to `save`."""

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
        """Tell with it of a new password, whoever has given it."""
        is_new_password = not self._state.adding and self._password is not None
        with transaction.atomic():
            # Receivers lock what they end before the user is locked: a request to him is
            # made in this order, too, and neither waits for the other in a circle.
            if is_new_password:
                password_changed.send(sender=User, user=self)
            super().save(*args, **kwargs)
