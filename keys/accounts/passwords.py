"""The pages on which people change a password, or get one that they have forgotten."""

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
    """Ask for an address, and send a mail to it."""
    form = EmailForm(request.POST if request.method == "POST" else None)
    return mail_form(request, form, mail_reset, "account/reset.html")


class ResetConfirm(PasswordResetConfirmView):
    """Have whoever got the mail choose another password."""

    template_name = "account/reset_confirm.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("login")

    def form_valid(self, form: NewPasswordForm) -> HttpResponse:
        """Change it, and let the user log in even if he has guessed too often."""
        response = super().form_valid(form)
        assert isinstance(form.user, User)
        ip = ip_of(self.request)
        forgive(form.user.email, ip)
        _tell(form.user, ip)
        messages.success(self.request, "Your new password is set. Log in with it.")
        return response


class Change(PasswordChangeView):
    """Have somebody who is logged in choose another password; others are logged out."""

    template_name = "account/password.html"
    form_class = CountedPasswordChangeForm
    success_url = reverse_lazy("account")

    def get_form(self, form_class: type[Any] | None = None) -> Any:
        """Return the form, which counts wrong passwords by where they come from."""
        form = super().get_form(form_class)
        form.ip = ip_of(self.request)
        return form

    def form_valid(self, form: Any) -> HttpResponse:
        """Change it."""
        response = super().form_valid(form)
        _tell(form.user, ip_of(self.request))
        messages.success(
            self.request,
            "Your password is changed. All other browsers are logged out.",
        )
        return response


def _tell(user: User, ip: str | None) -> None:
    """Send a mail about it; one that can't be sent undoes nothing."""
    try:
        mail_password_changed(user, ip)
    except OSError as error:
        logger.error("a mail could not be sent: %s", error)
