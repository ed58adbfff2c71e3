"""What people type in about their accounts."""

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

LOCKED_OUT = "Too many wrong passwords. Try again in 15 minutes."


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


if TYPE_CHECKING:  # what it is mixed into; and what is generic for the checker alone
    _LogIn = AuthenticationForm
    _SetPasswordForm = SetPasswordForm[User]
else:
    _LogIn = object
    _SetPasswordForm = SetPasswordForm


class TellsLockOut(_LogIn):
    """Says that somebody is locked out, be there an account or not.

    Who has remembered his password by then would else be told that it is wrong.
    """

    def get_invalid_login_error(self) -> ValidationError:
        """Return what is said of a log-in that was refused."""
        email = User.objects.normalize_email(self.cleaned_data.get("username"))
        request = self.request
        if request and is_locked_out(email, request.META.get("REMOTE_ADDR") or None):
            return ValidationError(LOCKED_OUT)
        return super().get_invalid_login_error()


class LogInForm(TellsLockOut, AuthenticationForm):
    """The address and the password of somebody who logs in."""

    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": "No account has this address and this password.",
    }


class NewPasswordForm(_SetPasswordForm):
    """A password of whoever came by a mailed link; the cursor is in its field."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].widget.attrs["autofocus"] = True


class CountedPasswordChangeForm(PasswordChangeForm):
    """The old password and a new one; wrong old ones count as failed log-ins.

    Who finds a browser open must not be able to guess on.
    """

    ip: str | None = None
    """Where the form comes from."""

    def clean_old_password(self) -> str:
        """Return the old password if it is right. Raises: ValidationError."""
        email = cast(User, self.user).email
        if not may_try(email, self.ip):
            raise ValidationError(LOCKED_OUT)
        password = str(super().clean_old_password())
        forgive(email, self.ip)
        return password
