"""What people type in about their accounts."""

from __future__ import annotations

from typing import cast

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.core.exceptions import ValidationError

from keys.login import is_locked_out, note_failure
from keys.models import User


class EmailForm(forms.Form):
    """An e-mail address, as it is kept."""

    email = forms.EmailField(
        label="E-mail address",
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email", "autofocus": True}),
    )

    def clean_email(self) -> str:
        """Return the address in the form in which there is one of it."""
        return User.objects.normalize_email(self.cleaned_data["email"])


class CountedPasswordChangeForm(PasswordChangeForm):
    """The old password and a new one; wrong old ones count as failed log-ins.

    Who finds a browser open must not be able to guess on.
    """

    ip: str | None = None
    """Where the form comes from."""

    def clean_old_password(self) -> str:
        """Return the old password if it is right. Raises: ValidationError."""
        email = cast(User, self.user).email
        if is_locked_out(email, self.ip):
            raise ValidationError("Too many wrong passwords. Try again in 15 minutes.")
        try:
            return str(super().clean_old_password())
        except ValidationError:
            note_failure(email, self.ip)
            raise
