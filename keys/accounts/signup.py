"""The pages of sign-up: an address, an email, a password.

An account is created only after a mailed link was followed, so that visitors can't
register with the address of another person.
"""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from keys.accounts.forms import EmailForm, NewPasswordForm
from keys.accounts.links import LinkUseless, find_mail, make_account
from keys.accounts.mails import mail_signup
from keys.accounts.pages import account_page, mail_form
from keys.models import User


@account_page
@require_http_methods(["GET", "HEAD", "POST"])
def signup(request: HttpRequest) -> HttpResponse:
    """Ask for an address, and send an email to it."""
    if request.user.is_authenticated:
        return redirect("dashboard:keys")
    if not settings.KEYS_SIGNUP:
        return _closed(request)
    form = EmailForm(request.POST if request.method == "POST" else None)
    return mail_form(request, form, mail_signup, "account/signup.html")


@account_page
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Show the password form to the recipient of an email, create the account and log in."""
    if not settings.KEYS_SIGNUP:
        return _closed(request)
    try:
        email = find_mail(token).email
        posted = request.POST if request.method == "POST" else None
        form = NewPasswordForm(User(email=email), posted)
        if not form.is_valid():
            context = {"form": form, "email": email}
            return render(request, "account/signup_confirm.html", context)
        user = make_account(token, form.cleaned_data["new_password1"])
    except LinkUseless:
        return render(request, "account/useless.html", status=HTTPStatus.GONE)
    login(request, user)
    return redirect("dashboard:keys")


def _closed(request: HttpRequest) -> HttpResponse:
    return render(request, "account/closed.html", status=HTTPStatus.FORBIDDEN)
