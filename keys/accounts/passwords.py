"""Pages to change a password, and to reset a forgotten one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.views import PasswordChangeView, PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.views.decorators.http import require_http_methods

from keys.accounts.forms import CountedPasswordChangeForm, EmailForm, NewPasswordForm
from keys.accounts.mails import mail_password_changed, mail_reset
from keys.accounts.pages import account_page, ip_of, logger, mail_form
from keys.login import forgive
from keys.models import User


@account_page
@require_http_methods(["GET", "HEAD", "POST"])
def reset(request: HttpRequest) -> HttpResponse:
    """Ask for an address, and send an email to it."""
    form = EmailForm(request.POST if request.method == "POST" else None)
    return mail_form(request, form, mail_reset, "account/reset.html")


class ResetConfirm(PasswordResetConfirmView):
    """Show the form for a new password to the recipient of an email."""

    template_name = "account/reset_confirm.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("login")

    def form_valid(self, form: NewPasswordForm) -> HttpResponse:
        """Set the new password, and end a lock-out of the user."""
        response = super().form_valid(form)
        assert isinstance(form.user, User)
        ip = ip_of(self.request)
        forgive(form.user.email, ip)
        _notify(form.user, ip)
        messages.success(self.request, "Your new password is set. Log in with it.")
        return response


class Change(PasswordChangeView):
    """Show the form for a new password to a logged-in user.

    A change ends other sessions.
    """

    template_name = "account/password.html"
    form_class = CountedPasswordChangeForm
    success_url = reverse_lazy("account")

    def get_form(self, form_class: type[Any] | None = None) -> Any:
        """Return the form, which counts wrong passwords by IP address."""
        form = super().get_form(form_class)
        form.ip = ip_of(self.request)
        return form

    def form_valid(self, form: Any) -> HttpResponse:
        """Set the new password and notify the user."""
        response = super().form_valid(form)
        _notify(form.user, ip_of(self.request))
        messages.success(
            self.request,
            "Your password is changed. All other sessions are logged out.",
        )
        return response


def _notify(user: User, ip: str | None) -> None:
    """Notify the user by email. An error is logged and does not undo the change."""
    try:
        mail_password_changed(user, ip)
    except OSError as error:
        logger.error("an email could not be sent: %s", error)
