"""Forms of the account pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib.auth.forms import (
    AuthenticationForm,
    PasswordChangeForm,
    SetPasswordForm,
)
from django.core.exceptions import ValidationError

from keys.login import forgive, is_locked_out, may_try
from keys.models import User
from legible.fields import validate_name

LOCKED_OUT = "Too many wrong passwords. Try again in 15 minutes."


class EmailForm(forms.Form):
    """Form of an email address, which is normalised as in the database."""

    email = forms.EmailField(
        label="Email address",
        max_length=254,
        validators=[validate_name],
        widget=forms.EmailInput(attrs={"autocomplete": "email", "autofocus": True}),
    )

    def clean_email(self) -> str:
        """Return the address in its normalised form, which is unique."""
        return User.objects.normalize_email(self.cleaned_data["email"])


if TYPE_CHECKING:  # the base class, which is generic for the type checker only
    _LogIn = AuthenticationForm
    _SetPasswordForm = SetPasswordForm[User]
else:
    _LogIn = object
    _SetPasswordForm = SetPasswordForm


class TellsLockOut(_LogIn):
    """Mixin of log-in forms that shows a separate error during a lock-out.

    It is shown whether or not the address has an account. Without it, users who enter
    the right password during a lock-out would read that the password is wrong.
    """

    def get_invalid_login_error(self) -> ValidationError:
        """Return the error message of a failed log-in."""
        email = User.objects.normalize_email(self.cleaned_data.get("username"))
        request = self.request
        if request and is_locked_out(email, request.META.get("REMOTE_ADDR") or None):
            return ValidationError(LOCKED_OUT)
        return super().get_invalid_login_error()


class LogInForm(TellsLockOut, AuthenticationForm):
    """The log-in form: email address and password."""

    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": "The email address or the password is wrong.",
    }


class NewPasswordForm(_SetPasswordForm):
    """A new password after following a mailed link, with the focus in its field."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].widget.attrs["autofocus"] = True


class CountedPasswordChangeForm(PasswordChangeForm):
    """Form for a new password. Wrong old passwords count as failed logins.

    Otherwise, a person with access to an open session could guess without limit.
    """

    ip: str | None = None
    """IP address of the request."""

    def clean_old_password(self) -> str:
        """Return the old password. Raises: ValidationError if it is wrong."""
        email = cast(User, self.user).email
        if not may_try(email, self.ip):
            raise ValidationError(LOCKED_OUT)
        password = str(super().clean_old_password())
        forgive(email, self.ip)
        return password
